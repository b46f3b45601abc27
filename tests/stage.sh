# stage BUILD DESTDIR COPY: installs what stands in BUILD into DESTDIR, as seen from COPY, a folder
# made for this, so that the log in BUILD, by which "ninja uninstall" knows what to remove, stays
# that of the user's last install.
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
