package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints a script; each shell's manual says where it goes.
func (c *completionCmd) Run(e *env) error {
	words := map[string][]string{}
	gather(e.parser.Model.Node, "", words)
	script := bashScript(words)
	switch c.Shell {
	case "zsh":
		script = "autoload -U +X bashcompinit && bashcompinit\n" + script
	case "fish":
		script = fishScript(words)
	}
	_, err := io.WriteString(e.out, script)
	return err
}

// gather lists the sub-commands and flags of every command by its path.
func gather(n *kong.Node, path string, words map[string][]string) {
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		words[path] = append(words[path], child.Name)
		gather(child, strings.TrimSpace(path+" "+child.Name), words)
	}
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			words[path] = append(words[path], "--"+f.Name)
		}
	}
}

func bashScript(words map[string][]string) string {
	var b strings.Builder
	b.WriteString("_hostler() {\n  local path=\"\" word\n  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n" +
		"    case \"$word\" in -*) ;; *) path=\"$path $word\" ;; esac\n  done\n  case \"${path# }\" in\n")
	for path, list := range words {
		fmt.Fprintf(&b, "    %q) COMPREPLY=($(compgen -W %q -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n", path, strings.Join(list, " "))
	}
	b.WriteString("    *) COMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\")) ;;\n  esac\n}\ncomplete -F _hostler hostler\n")
	return b.String()
}

func fishScript(words map[string][]string) string {
	var b strings.Builder
	for path, list := range words {
		condition := "__fish_use_subcommand"
		if path != "" {
			condition = "__fish_seen_subcommand_from " + path[strings.LastIndexByte(path, ' ')+1:]
		}
		var plain []string
		for _, w := range list {
			if !strings.HasPrefix(w, "--") {
				plain = append(plain, w)
			}
		}
		if len(plain) > 0 {
			fmt.Fprintf(&b, "complete -c hostler -f -n %q -a %q\n", condition, strings.Join(plain, " "))
		}
	}
	return b.String()
}
