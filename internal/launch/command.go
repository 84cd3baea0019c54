package launch

// RemoteCommand returns the command line that runs a command on a host, as for agents.
// Without a template it uses ssh, and returns nil for this machine, which needs no
// remote shell.
func RemoteCommand(template []string, host string, command ...string) []string {
	if template == nil {
		if isThisMachine(host) {
			return nil
		}
		template, _ = ParseRSH(defaultRSH) // a constant that can be parsed
	}
	return rshWords(template, host, command...)
}
