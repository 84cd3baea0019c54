package core

// FrontConstants returns the numbers of this package that the fronts use: parts of handles, the functions that only it calls, and what follows an error.
func FrontConstants() map[string]int64 {
	unsigned := func(h handle) int64 { return int64(uint32(h)) }
	return map[string]int64{
		"COMM_WORLD": unsigned(commWorld), "MADE_COMM": unsigned(made | kindComm),
		"MADE_REQUEST": unsigned(made | kindRequest), "REQUEST_NULL": unsigned(requestNull),
		"SLOT_MASK": slotMask, "DIRECT": unsigned(directBit), "DIRECT_MASK": unsigned(directBit - 1),
		"CORE_INIT": callInit, "CORE_FINALIZE": callFinalize, "CORE_LOAD": callLoad,
		"CORE_EXIT": callExit, "CORE_SHARE": callShare, "CORE_WAKE": callWake,
		"OUTCOME_RETURN": outcomeReturn, "OUTCOME_FATAL": outcomeFatal, "OUTCOME_HANDLER": outcomeHandler,
	}
}
