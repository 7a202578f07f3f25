# As bashrc.sh, for zsh, which reads it as .zshenv; from then on it reads the files of your own folder.
__yurt_folder=${ZDOTDIR%/ssh}
if [[ -n $YURT_ZDOTDIR ]]; then ZDOTDIR=$YURT_ZDOTDIR; else unset ZDOTDIR; fi
unset YURT_ZDOTDIR
[[ ! -r ${ZDOTDIR:-$HOME}/.zshenv ]] || . "${ZDOTDIR:-$HOME}/.zshenv"

__yurt_prompt() { # from the second time on it runs last: a prompt that is set again each time is supported
  local end='' minutes
  if [[ -z ${__yurt_begun-} ]]; then
    __yurt_begun=1
    emulate sh -c '. "$__yurt_folder/environment"' # profiles reset PATH
  fi
  precmd_functions=(${precmd_functions:#__yurt_prompt} __yurt_prompt)
  PS1=${PS1#"${__yurt_left-}"}
  __yurt_left=
  { read -r end < "$__yurt_folder/end" } 2> /dev/null
  end=${end%%.*}
  if [[ $end == <-> ]]; then
    minutes=$(((end - $(date +%s)) / 60))
    ((minutes > 0)) || minutes=0
    __yurt_left="[${minutes}m left] "
    ((minutes < 60)) || __yurt_left="[$((minutes / 60))h$((minutes % 60))m left] "
  fi
  [[ . -ef $PWD ]] || __yurt_left+='[replaced folder] '
  PS1=$__yurt_left$PS1
}
precmd_functions+=(__yurt_prompt)
