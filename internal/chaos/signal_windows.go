package chaos

// There are no labs on this system.

func kill(int)   {}
func stop(int)   {}
func resume(int) {}
func quit(int)   {}
