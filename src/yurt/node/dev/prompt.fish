# The prompt of bashrc.sh, for fish. Your configuration has been read.
set -g __yurt_end (dirname (dirname (status filename)))/end
functions --query fish_prompt; and functions --copy fish_prompt __yurt_own_prompt
function fish_prompt
    set -l end
    test -r $__yurt_end; and read end <$__yurt_end
    set end (string match --regex '^[0-9]+' -- "$end")
    if test -n "$end"
        set -l minutes (math --scale=0 "max(0, ($end - "(date +%s)") / 60)")
        if test $minutes -lt 60
            printf '[%sm left] ' $minutes
        else
            printf '[%sh%sm left] ' (math --scale=0 "$minutes / 60") (math "$minutes % 60")
        end
    end
    command test . -ef $PWD; or printf '[replaced folder] '
    functions --query __yurt_own_prompt; and __yurt_own_prompt
end
