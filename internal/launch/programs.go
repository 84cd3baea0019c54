package launch

// The programs of a job. Ranks are numbered program by program.

import (
	"errors"
	"fmt"
)

// sumRanks sets the number of ranks of a job with several programs.
func (c *Config) sumRanks() error {
	if len(c.Programs) == 0 {
		return nil
	}
	if c.Prog != "" || len(c.Args) > 0 || c.Ranks != 0 {
		return errors.New("launch: Config has both Programs and Prog, Args or Ranks: use one of them")
	}
	for i, p := range c.Programs {
		if p.Ranks < 1 || p.Ranks > maxRanks {
			return fmt.Errorf("launch: program %d of the job (%s) has %d ranks: use 1 to %d", i+1, p.Prog, p.Ranks, maxRanks)
		}
		c.Ranks += p.Ranks
	}
	return nil
}

// completePrograms makes a job of one program a job with a list of one.
func (c *Config) completePrograms() error {
	if len(c.Programs) == 0 {
		c.Programs = []Program{{Ranks: c.Ranks, Prog: c.Prog, Args: c.Args}}
	}
	programs := make([]Program, len(c.Programs))
	for i, p := range c.Programs {
		if p.Prog == "" {
			return errors.New("launch: no program to run")
		}
		if p.Dir == "" {
			p.Dir = c.Dir
		}
		programs[i] = p
	}
	c.Programs = programs
	return nil
}

// programOf returns the index of the program of a rank.
func programOf(programs []Program, rank int) int {
	for i, p := range programs {
		if rank -= p.Ranks; rank < 0 {
			return i
		}
	}
	return len(programs) - 1
}
