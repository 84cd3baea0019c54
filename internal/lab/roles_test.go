package lab

// The test binary is also the program that runs on the hosts: its roles there, and
// functions that start them.

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	switch os.Getenv("LAB_TEST_ROLE") {
	case "echo":
		echo()
	case "ask":
		ask()
	case "swallow":
		swallow()
	case "pour":
		pour()
	case "count":
		count()
	case "shower":
		shower()
	case "make a lab":
		makeLab()
	}
	os.Exit(m.Run())
}

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// echo listens at LAB_TEST_ADDR, prints "ready", and echoes until it is killed.
func echo() {
	l, err := net.Listen("tcp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	fmt.Println("ready")
	for {
		c, err := l.Accept()
		check(err)
		go func() {
			io.Copy(c, c)
			c.Close()
		}()
	}
}

// ask sends a word to an address and prints the answer or the error.
func ask() {
	c, err := net.DialTimeout("tcp", os.Getenv("LAB_TEST_ADDR"), 500*time.Millisecond)
	if err == nil {
		c.SetDeadline(time.Now().Add(2 * time.Second))
		io.WriteString(c, "hello")
		c.(*net.TCPConn).CloseWrite()
		_, err = io.Copy(os.Stdout, c)
	}
	if err != nil {
		io.WriteString(os.Stdout, err.Error())
	}
	os.Exit(0)
}

func start(t *testing.T, l *Lab, host, role, addr string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	cmd := l.Command(ctx, host, os.Args[0])
	cmd.Env = append(os.Environ(), "LAB_TEST_ROLE="+role, "LAB_TEST_ADDR="+addr)
	return cmd
}

func startEcho(t *testing.T, l *Lab, host, addr string) *exec.Cmd {
	t.Helper()
	return startServer(t, l, host, "echo", addr)
}

func startServer(t *testing.T, l *Lab, host, role, addr string) *exec.Cmd {
	t.Helper()
	cmd := start(t, l, host, role, addr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	word := make([]byte, 100)
	n, err := out.Read(word)
	if output := string(word[:n]); err != nil || output != "ready\n" {
		t.Fatalf("%s on %s printed %q, %v", role, host, output, err)
	}
	return cmd
}

func answer(t *testing.T, l *Lab, host, addr string) string {
	t.Helper()
	return result(t, l, host, "ask", addr)
}

// swallow reads all data of a connection and answers with its size.
func swallow() {
	l, err := net.Listen("tcp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	fmt.Println("ready")
	for {
		c, err := l.Accept()
		check(err)
		go func() {
			n, _ := io.Copy(io.Discard, c)
			fmt.Fprint(c, n)
			c.Close()
		}()
	}
}

// pour sends bytes to an echo or swallow server and prints the time until the answer was
// complete.
func pour() {
	size, err := strconv.Atoi(os.Getenv("LAB_TEST_SIZE"))
	check(err)
	c, err := net.Dial("tcp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	start := time.Now()
	go func() {
		_, err := c.Write(make([]byte, size))
		check(err)
		check(c.(*net.TCPConn).CloseWrite())
	}()
	output, err := io.ReadAll(c)
	check(err)
	fmt.Print(time.Since(start).Seconds())
	if len(output) != size && string(output) != strconv.Itoa(size) {
		fmt.Print(" but only ", len(output), " bytes came back")
	}
	os.Exit(0)
}

// count counts datagrams and reports their number to each TCP client when no more arrive.
func count() {
	u, err := net.ListenPacket("udp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	l, err := net.Listen("tcp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	fmt.Println("ready")
	got, packet := 0, make([]byte, 100)
	for {
		c, err := l.Accept()
		check(err)
		for {
			u.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			if _, _, err := u.ReadFrom(packet); err != nil {
				break
			}
			got++
		}
		fmt.Fprintln(c, got)
		c.Close()
	}
}

// shower sends datagrams to one address and requests their count at another. It does so
// after every few, so that none are lost because the receiver's socket buffer is full.
func shower() {
	u, err := net.Dial("udp", os.Getenv("LAB_TEST_ADDR"))
	check(err)
	var answer []byte
	for range 20 {
		for range 50 {
			_, err := u.Write([]byte("drop"))
			check(err)
		}
		c, err := net.Dial("tcp", os.Getenv("LAB_TEST_ASK"))
		check(err)
		answer, err = io.ReadAll(c)
		check(err)
	}
	os.Stdout.Write(answer)
	os.Exit(0)
}

// makeLab creates a lab, prints its first host, and waits to be killed.
func makeLab() {
	l, err := Create(Config{Prefix: os.Getenv("LAB_TEST_PREFIX")})
	check(err)
	fmt.Println(l.Hosts()[0])
	time.Sleep(time.Minute) // until it is killed
	os.Exit(1)
}

// result runs a role to its end and returns its output.
func result(t *testing.T, l *Lab, host, role, addr string, env ...string) string {
	t.Helper()
	cmd := start(t, l, host, role, addr)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s on %s: %v: %s", role, host, err, out)
	}
	return string(out)
}
