package launch

// RemoteCommand is the words that run a command on a host, in the way agents are
// started. No template is the default, ssh, and then there are no words for this
// machine, which needs no shell.
func RemoteCommand(template []string, host string, command ...string) []string {
	if template == nil {
		if isThisMachine(host) {
			return nil
		}
		template, _ = ParseRSH(defaultRSH) // a constant that can be parsed
	}
	return rshWords(template, host, command...)
}
