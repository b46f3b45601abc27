# stage BUILD DESTDIR COPY: installs BUILD into DESTDIR. It does so from COPY, a new folder that links to BUILD, because
# "ninja uninstall" in BUILD needs the log of the user's last installation there.
stage() {
    mkdir -p "$3/meson-private" "$3/meson-logs"
    for entry in "$1"/*; do
        case $entry in
        */meson-private | */meson-logs) ;;
        *) if [ -d "$entry" ]; then ln -s "$entry" "$3"; else cp -p "$entry" "$3"; fi ;;
        esac
    done
    cp -p "$1/meson-private/install.dat" "$3/meson-private"
    DESTDIR=$2 meson install -C "$3" --no-rebuild --quiet
}
