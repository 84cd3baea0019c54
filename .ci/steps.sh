# Steps of .ci/run, each with a title, a time limit and a command. A step runs once: what
# fails has to be looked at, and a repetition would hide a defect that shows only sometimes.
# timed_step is for tests with time limits: the machine is shared, and a pause of a second
# fails a test that nothing is wrong with. It is repeated once, and the end of the output
# names it and what failed. go test does not run again what passed, so the repetition is
# short. A fuzz target, random programs, a compiler and a linter have no such excuse:
# house_ci_test.go checks that they are never repeated. Nor is a step that does not end: go
# test ends a test that hangs, so the limit of a step is for what is worse.

began=$SECONDS
repeated=()
steps=()

# limited runs a command or function, with its output also in $step_log, and ends it and what
# it has started when its time is over, or when this script is to end.
limited() {
	local limit=$1 status=0 out tee job tries
	shift
	exec {out}> >(exec tee "$step_log")
	tee=$!
	set -m # else the command would ignore interrupts, and tests send some
	timeout -k 20 "$limit" bash -c '"$@"' step "$@" </dev/null >&$out 2>&1 {out}>&- &
	job=$!
	set +m
	exec {out}>&-
	trap 'kill $job; exit 130' INT TERM
	wait $job || status=$?
	trap - INT TERM
	for ((tries = 0; tries < 50; tries++)); do # tee ends when nothing that was left runs
		kill -0 $tee 2>/dev/null || break
		sleep 0.1
	done
	case $status in
	124 | 137) printf '\n=== %s: ended, because it took longer than %s\n' "$CI_STEP" "$limit" ;;
	esac
	return $status
}

# failed_tests prints the names of the tests in the output of a step that failed.
failed_tests() {
	sed -n -E 's/^ *--- FAIL: ([^ ]+).*/\1/p; s/^FAIL[[:space:]]+([^ ]+\/[^[:space:]]+).*/\1/p' "$step_log" | sort -u | head -n 20 | paste -s -d ' ' -
}

step() {
	local title=$1 start=$SECONDS
	shift
	printf '\n=== %s (at %d s)\n' "$title" $((SECONDS - began))
	if ! CI_STEP=$title limited "$@"; then
		printf '\n=== FAILED: %s, after %d s\n' "$title" $((SECONDS - start))
		exit 1
	fi
	printf '=== %s: %d s\n' "$title" $((SECONDS - start))
	steps+=("$((SECONDS - start)) s  $title")
}

timed_step() {
	local title=$1 start=$SECONDS status=0
	shift
	printf '\n=== %s (at %d s)\n' "$title" $((SECONDS - began))
	CI_STEP=$title limited "$@" || status=$?
	case $status in
	0)
		printf '=== %s: %d s\n' "$title" $((SECONDS - start))
		steps+=("$((SECONDS - start)) s  $title")
		return
		;;
	124 | 137)
		printf '\n=== FAILED: %s, after %d s\n' "$title" $((SECONDS - start))
		exit 1
		;;
	esac
	printf '\n=== FAILED: %s, after %d s; once more, because it has time limits\n' "$title" $((SECONDS - start))
	repeated+=("$title: $(failed_tests)")
	step "$title, once more" "$@"
}

# report prints the times of the steps, the slowest first, and what was repeated.
report() {
	local line
	printf '\n=== steps\n'
	printf '%s\n' "${steps[@]}" | sort -rn
	for line in "${repeated[@]}"; do
		printf '\n=== passed only when repeated: %s\n' "$line"
	done
	printf '\n=== all passed in %d s\n' $((SECONDS - began))
}
