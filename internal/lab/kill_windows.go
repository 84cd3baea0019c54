package lab

// There are no labs on this system.

func kill(int) {}

func gone(int) bool { return false }
