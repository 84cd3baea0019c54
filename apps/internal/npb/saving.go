package npb

// Saving is how an application that can go on after a failure makes checkpoints.
type Saving struct {
	// Every is the number of steps between checkpoints; 0: none.
	Every int
	// Step, if not nil, is called on each rank at the beginning of each step, from 1.
	Step func(step int)
}

// Begin announces a step.
func (s *Saving) Begin(step int) {
	if s.Step != nil {
		s.Step(step)
	}
}

// Due reports whether a checkpoint is made after a step.
func (s *Saving) Due(step int) bool { return s.Every > 0 && step%s.Every == 0 }
