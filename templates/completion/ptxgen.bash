# Completion of ptxgen for bash. Options, families and codes come from ptxgen itself.

_ptxgen_options()
{
    "$1" --help | sed -n 's/^  ..[, ] \(--[a-z-]*\).*/\1/p'
}

_ptxgen()
{
    local tool=$1 word=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD - 1]}
    local words='' kind='' before='' IFS=$'\n'
    if [[ $word == '=' ]]; then # bash splits --color=auto into three words
        word=''
    elif [[ $option == '=' ]]; then
        option=${COMP_WORDS[COMP_CWORD - 2]}
    fi

    case $option in
    -s | --spec) kind=spec ;;
    -o | --out) kind=folder ;;
    --validate | --init | --from-gguf | --expect | --depfile | --stamp | --emit-ninja | --report) kind=file ;;
    --target) kind=list words=$'sm_75\nsm_80\nsm_86\nsm_87\nsm_89\nsm_90\nsm_90a\nsm_100\nsm_103\nsm_110\nsm_120\nsm_121' ;;
    --dump) kind=list words=$'build\nfold\nprint' ;;
    --embed) kind=word words=$'string\nc23\nincbin' ;;
    --color) kind=word words=$'auto\nalways\nnever' ;;
    --help-family) kind=word words=$("$tool" --list | sed -n 's/^  \([^ ]*\) .*/\1/p') ;;
    --kv-type) kind=word words=$'f32\nf16\nbf16\nq8_0' ;;
    --explain) kind=word words=$("$tool" --explain | cut -d ' ' -f 1) ;;
    --man) kind=word words=$'ptxgen\nspec\nformats\nheader\nlibcuda' ;;
    --prefix | --max-seq-len | --only | --shard | --seed | -j | --jobs) return ;;
    esac
    if [[ -z $kind || $word == -* ]]; then
        kind=word words=$(_ptxgen_options "$tool")
    fi

    case $kind in
    spec)
        compopt -o filenames
        COMPREPLY=($(compgen -f -X '!*.ini' -- "$word") $(compgen -d -- "$word"))
        ;;
    folder)
        compopt -o filenames
        COMPREPLY=($(compgen -d -- "$word"))
        ;;
    file)
        compopt -o filenames
        COMPREPLY=($(compgen -f -- "$word"))
        ;;
    list) # complete the last word of a comma-separated list
        before=${word%"${word##*,}"}
        compopt -o nospace
        COMPREPLY=($(compgen -P "$before" -W "$words" -- "${word##*,}"))
        ;;
    word)
        COMPREPLY=($(compgen -W "$words" -- "$word"))
        ;;
    esac
}

complete -F _ptxgen ptxgen
