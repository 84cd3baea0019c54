# Steps of .ci/nightly: one that fails does not end the run, and is not repeated.

night_rows=()
night_failed=()
wanted=("$@")

# night_step runs a step, unless others are wanted.
night_step() {
	local name=$1 start=$SECONDS result=ok
	shift
	if [ ${#wanted[@]} -gt 0 ] && [[ " ${wanted[*]} " != *" $name "* ]]; then
		return
	fi
	printf '\n=== %s (at %d s)\n' "$name" $((SECONDS - began))
	step_log=$night/$name.log
	if ! CI_STEP=$name limited "$@"; then
		result=FAILED
		night_failed+=("$name")
	elif grep -q '^skipped: ' "$step_log"; then
		result=skipped
	fi
	shift # the limit
	night_rows+=("| $name | $result | $((SECONDS - start)) | \`$*\` |")
	printf '=== %s: %s, %d s\n' "$name" "$result" $((SECONDS - start))
}

# night_report writes a page, and fails if a step has.
night_report() {
	local logs=$1 page=$2 name
	{
		printf '# Nightly run\n\nCommit %s, %s.\n\n' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$(date -u '+%F %H:%M UTC')"
		printf '| step | result | s | command |\n| --- | --- | --- | --- |\n'
		printf '%s\n' "${night_rows[@]}"
		for name in "${night_failed[@]}"; do
			step_log=$logs/$name.log
			printf '\n## %s\n\nFailed: %s\n\n```\n' "$name" "$(failed_tests)"
			tail -n 40 "$step_log"
			printf '```\n'
		done
	} >"$page"
	printf '\n=== %d of %d steps failed: %s\n' ${#night_failed[@]} ${#night_rows[@]} "$page"
	[ ${#night_failed[@]} -eq 0 ]
}
