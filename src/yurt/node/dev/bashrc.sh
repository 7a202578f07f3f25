# shellcheck shell=bash
# The start of a terminal of a dev node: your profile, then the environment of the job. The prompt has the time left, and
# says if a restore has replaced the folder: its path is then that of the new one.
__yurt_folder=${BASH_SOURCE[0]%/ssh/*}
# shellcheck disable=SC1090,SC1091
{
  [ ! -r /etc/profile ] || . /etc/profile
  for __yurt_each in ~/.bash_profile ~/.bash_login ~/.profile; do
    if [ -r "$__yurt_each" ]; then
      . "$__yurt_each"
      break
    fi
  done
  . "$__yurt_folder/environment" # profiles reset PATH
}
unset __yurt_each
__yurt_prompt() { # your own prompt follows; a prompt that is set again each time is supported
  local end='' now minutes
  PS1=${PS1#"${__yurt_left-}"}
  __yurt_left=
  { read -r end < "$__yurt_folder/end"; } 2> /dev/null || :
  end=${end%%.*}
  if [[ $end =~ ^[0-9]+$ ]]; then
    printf -v now '%(%s)T' -1
    minutes=$(((end - now) / 60))
    ((minutes > 0)) || minutes=0
    __yurt_left="[${minutes}m left] "
    ((minutes < 60)) || __yurt_left="[$((minutes / 60))h$((minutes % 60))m left] "
  fi
  [ . -ef "$PWD" ] || __yurt_left+='[replaced folder] '
  PS1=$__yurt_left$PS1
}
# shellcheck disable=SC2128,SC2178 # it may be a string or an array
case $(declare -p PROMPT_COMMAND 2> /dev/null) in
  'declare -a'*) PROMPT_COMMAND+=(__yurt_prompt) ;;
  *) PROMPT_COMMAND=${PROMPT_COMMAND:+$PROMPT_COMMAND$'\n'}__yurt_prompt ;;
esac
