package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/muster-mpi/muster/mpi"
	"github.com/muster-mpi/muster/tests/soak/program"
)

func main() {
	var cfg program.Config
	flag.Uint64Var(&cfg.Seed, "seed", 1, "number that determines the program")
	flag.DurationVar(&cfg.Time, "time", 5*time.Second, "how long it goes on")
	flag.IntVar(&cfg.Steps, "steps", 0, "number of steps; 0: no limit")
	flag.IntVar(&cfg.Largest, "largest", 1<<20, "length of the longest message in bytes")
	flag.BoolVar(&cfg.Survive, "survive", false, "go on without failed ranks")
	verbose := flag.Bool("v", false, "print recoveries")
	flag.Parse()
	mpi.Main(func(c *mpi.Comm) error {
		if *verbose {
			cfg.Log = func(format string, args ...any) {
				fmt.Fprintf(os.Stderr, time.Now().Format("05.000 ")+format+"\n", args...)
			}
		}
		if err := c.Barrier(); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("soak: started")
		}
		result, err := program.Run(c, cfg)
		if err != nil {
			return err
		}
		fmt.Printf("soak: ok, %d steps, %d recoveries, %v\n", result.Steps, result.Recoveries, result.Kinds)
		return nil
	})
}
