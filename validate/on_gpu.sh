#!/usr/bin/env bash
# Measures a GPU machine in one go, the most valuable first: microbenchmarks, then schedules executed for real, those of
# memory plans among them, then training steps of PyTorch; compares what was executed with what is predicted, and packs
# what was found into archives of at most 16 MB. Started again it goes on where it was stopped.
set -u -o pipefail

usage() {
  cat <<'END'
usage: validate/on_gpu.sh [--minutes N] [--out DIR] [--schedules DIR] [--steps PATH] [--scale FACTORS]
                          [--scratch DIR] [--backend NAME] [--dry-run]

  --minutes N      for everything, building included (default 20)
  --out DIR        results, planned, replay, pytorch, log, archives (default on_gpu)
  --schedules DIR  *.schedule and *.schedule.gz that are executed (default: none)
  --steps PATH     a trace (.mwt), or a folder of them: of each, memory plans are made (checkpoint, offload), scheduled,
                   executed and compared (default: traces/samples/gpt_124m.mwt)
  --scale FACTORS  of these steps, as of `memwall schedule` (default: none; of the back end host bytes=1/32,flops=5e-5)
  --scratch DIR    folder on the NVMe drive, for files that are measured (default: DIR of --out)
  --backend NAME   cuda or host; host tries the script on a computer without a GPU (default cuda)
  --dry-run        print what would be done, and do nothing
  --help           print this

Needs nvcc, CMake and a compiler; or programs built elsewhere (cmake -S validate -DMEMWALL_STATIC=ON), named by the
environment variables MEMWALL_BENCH and MEMWALL_REPLAY. Plans are made and executions compared where memwall itself is
there: on the PATH, or named by MEMWALL. PyTorch is measured where python3 (MEMWALL_PYTHON) has torch.

exit codes: 0 done, 1 something failed (the log folder says what), 2 wrong usage
END
}

refuse() {
  echo "on_gpu.sh: $1" >&2
  echo "Try \`on_gpu.sh --help\`." >&2
  exit 2
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
minutes=20 out=on_gpu schedules="" steps="" scale="" scratch="" backend=cuda dry=no
while [ $# -gt 0 ]; do
  flag=${1%%=*}
  case $flag in
    --help | -h) usage; exit 0 ;;
    --dry-run) dry=yes; shift; continue ;;
    --minutes | --out | --schedules | --steps | --scale | --scratch | --backend) ;;
    *) refuse "unknown argument \"$1\"; --help lists all." ;;
  esac
  if [ "$flag" != "$1" ]; then
    value=${1#*=}
    shift
  else
    [ $# -ge 2 ] || refuse "$flag: expected a value after it."
    value=$2
    shift 2
  fi
  [ -n "$value" ] || refuse "$flag: expected a value, found an empty one."
  case $flag in
    --minutes) minutes=$value ;;
    --out) out=$value ;;
    --schedules) schedules=$value ;;
    --steps) steps=$value ;;
    --scale) scale=$value ;;
    --scratch) scratch=$value ;;
    --backend) backend=$value ;;
  esac
done
[[ $minutes =~ ^[1-9][0-9]{0,3}$ ]] || refuse "--minutes \"$minutes\": expected a whole number from 1 to 9999."
[[ $backend == cuda || $backend == host ]] || refuse "--backend \"$backend\": expected cuda or host."
[ -z "$schedules" ] || [ -d "$schedules" ] || refuse "--schedules \"$schedules\": there is no such folder; expected one."
steps=${steps:-$root/traces/samples/gpt_124m.mwt}
[ -f "$steps" ] || [ -d "$steps" ] ||
  refuse "--steps \"$steps\": there is no such file or folder; expected a trace (.mwt), or a folder of them."
[ -z "$scratch" ] || [ -d "$scratch" ] || refuse "--scratch \"$scratch\": there is no such folder; expected one."
if [ -n "${MEMWALL_BENCH:-}" ] || [ -n "${MEMWALL_REPLAY:-}" ]; then
  for program in "${MEMWALL_BENCH:-}" "${MEMWALL_REPLAY:-}"; do
    [ -x "$program" ] || refuse "MEMWALL_BENCH and MEMWALL_REPLAY: expected two programs, found \"$program\"."
  done
fi

memwall=${MEMWALL-$(command -v memwall || true)}
[ -z "$memwall" ] || [ -x "$memwall" ] || refuse "MEMWALL: expected the program memwall, found \"$memwall\"."

bench=${MEMWALL_BENCH:-$root/build/gpu/memwall-bench}
replay=${MEMWALL_REPLAY:-$root/build/gpu/memwall-replay}
python=${MEMWALL_PYTHON:-python3}
device=cuda
[ "$backend" = cuda ] || device=cpu
[ -n "$scale" ] || [ "$backend" = cuda ] || scale=bytes=1/32,flops=5e-5
scratch=${scratch:-$out}
total=$((minutes * 60))
failures=0

left() { echo $((total - SECONDS)); }
at_most() { echo $(($1 < $2 ? $1 : $2)); }
failed() {
  echo "on_gpu.sh: $1" >&2
  failures=$((failures + 1))
}
# A program that hangs on a device must not take the rest with it.
limited() {
  local seconds=$1
  shift
  if command -v timeout >/dev/null; then timeout --kill-after=15 "$seconds" "$@"; else "$@"; fi
}

given_schedules() {
  [ -n "$schedules" ] || return 0
  find "$schedules" -maxdepth 1 -type f \( -name '*.schedule' -o -name '*.schedule.gz' \) | LC_ALL=C sort
}
# A planned case is a line: NAME STEP POLICY; of the policy "-" the step as it is, to compare with.
planned_cases() {
  [ -n "$memwall" ] || return 0
  local step
  { if [ -d "$steps" ]; then find "$steps" -maxdepth 1 -type f -name '*.mwt'; else echo "$steps"; fi; } | LC_ALL=C sort |
    while IFS= read -r step; do
      printf '%s\t%s\t%s\n' "$(basename "$step" .mwt).resident" "$step" -
      printf '%s\t%s\t%s\n' "$(basename "$step" .mwt).plan_checkpoint" "$step" checkpoint:mode=full
      printf '%s\t%s\t%s\n' "$(basename "$step" .mwt).plan_offload" "$step" offload:what=activations,to=host
    done
}
# Those given, then those of plans, as far as they are written.
schedule_files() {
  given_schedules
  local name step policy
  while IFS=$'\t' read -r name step policy; do
    [ ! -e "$out/planned/$name.schedule" ] || echo "$out/planned/$name.schedule"
  done < <(planned_cases)
}
schedule_name() { basename "$(basename "$1" .gz)" .schedule; }
has_torch() { "$python" -c 'import torch' >/dev/null 2>&1; }
# Half of the time for PyTorch, of the rest most for the microbenchmarks: everything else leans on them.
bench_seconds() { at_most 600 $((total * 3 / 10)); }

plan_flag() { [ "$1" = - ] || echo " --plan $out/planned/$2.plan"; }

plan() {
  if [ -n "${MEMWALL_BENCH:-}" ]; then echo "build: nothing, $bench and $replay are given"; else
    echo "build: cmake -S $root/validate -B $root/build/gpu"; fi
  if [ -e "$out/results/finished" ]; then echo "bench: skipped, $out/results is there"; else
    echo "bench: $bench --backend $backend --seconds $(bench_seconds) -o $out/results"; fi
  local file name any=no
  while IFS= read -r file; do
    any=yes
    name=$(schedule_name "$file")
    if [ -e "$out/replay/$name.execution.csv" ]; then echo "replay: $name skipped, $out/replay has it"; else
      echo "replay: $replay $file --backend $backend -o $out/replay/$name.execution.csv"; fi
  done < <(given_schedules)
  local step policy
  while IFS=$'\t' read -r name step policy; do
    any=yes
    if [ -e "$out/replay/$name.execution.csv" ]; then echo "plan: $name skipped, $out/replay has it"; continue; fi
    if [ -e "$out/planned/$name.schedule" ]; then echo "plan: $name skipped, $out/planned has its schedule"; else
      [ "$policy" = - ] || echo "plan: $memwall run $step --policy $policy --plan-out $out/planned/$name.plan"
      echo "plan: $memwall schedule $step$(plan_flag "$policy" "$name")${scale:+ --scale $scale} -o $out/planned/$name.schedule"
    fi
    echo "replay: $replay $out/planned/$name.schedule --backend $backend -o $out/replay/$name.execution.csv"
  done < <(planned_cases)
  [ -n "$memwall" ] || echo "plan: skipped, there is no memwall"
  [ $any = yes ] || echo "replay: skipped, no schedules"
  if has_torch; then
    echo "pytorch: $python $root/validate/pytorch/matrix.py --out $out/pytorch --minutes REST --device $device"; else
    echo "pytorch: skipped, $python has no torch"; fi
  if [ -n "$memwall" ]; then echo "compare: $memwall validate, of $out/results and $out/replay"; else
    echo "compare: skipped, there is no memwall"; fi
  echo "archive: $out/archive-N.tar.gz"
}

build() {
  [ -z "${MEMWALL_BENCH:-}" ] || return 0
  command -v cmake >/dev/null || refuse "there is no cmake; expected one, or MEMWALL_BENCH and MEMWALL_REPLAY."
  local flags=(-S "$root/validate" -B "$root/build/gpu" -DCMAKE_BUILD_TYPE=Release) compiler capability
  if [ "$backend" = cuda ]; then
    compiler=${CUDACXX:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
    [ -x "$compiler" ] || refuse "there is no nvcc on the PATH, nor in CUDACXX; expected one, or MEMWALL_BENCH and MEMWALL_REPLAY."
    flags+=(-DMEMWALL_CUDA=ON -DCMAKE_CUDA_COMPILER="$compiler")
    # For this GPU only, which builds sooner; for the usual ones where it does not say what it is.
    capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d '. ')
    [[ $capability =~ ^[0-9]+$ ]] && flags+=(-DCMAKE_CUDA_ARCHITECTURES="$capability")
  else
    flags+=(-DMEMWALL_CUDA=OFF)
  fi
  echo "on_gpu.sh: building; the log is $out/log/build.txt"
  { cmake "${flags[@]}" && cmake --build "$root/build/gpu" --parallel; } >"$out/log/build.txt" 2>&1 && return 0
  tail -n 20 "$out/log/build.txt" >&2
  failed "the programs could not be built; see $out/log/build.txt."
  return 1
}

# The figures are there from the first benchmark on; "finished" says that there will be no more.
measure() {
  [ ! -e "$out/results/finished" ] || return 0
  local seconds code=0
  seconds=$(at_most "$(bench_seconds)" "$(left)")
  [ "$seconds" -gt 0 ] || { failed "no time was left for the microbenchmarks."; return; }
  echo "on_gpu.sh: microbenchmarks, up to $seconds s"
  limited $((seconds + 120)) "$bench" --backend "$backend" --seconds "$seconds" --scratch "$scratch" \
    -o "$out/results" >"$out/log/bench.txt" 2>"$out/log/bench-errors.txt" || code=$?
  case $code in
    0) ;;
    1) failed "some microbenchmarks failed; see $out/log/bench-errors.txt." ;;
    2) tail -n 3 "$out/log/bench-errors.txt" >&2
       failed "the microbenchmarks cannot run here."
       return 1 ;;
    *) failed "the microbenchmarks ended with code $code; what they found before is kept."
       return 0 ;;
  esac
  echo "$code" >"$out/results/finished"
}

# Memory plans of the steps, and the schedules of the planned steps.
make_plans() {
  [ -n "$memwall" ] || { echo "on_gpu.sh: plans are skipped: there is no memwall."; return; }
  local name step policy seconds code log flags
  mkdir -p "$out/planned" || { failed "$out/planned cannot be made."; return; }
  while IFS=$'\t' read -r name step policy; do
    [ ! -e "$out/planned/$name.schedule" ] || continue
    seconds=$(at_most 300 "$(left)")
    [ "$seconds" -gt 0 ] || { failed "no time was left for the plan $name."; continue; }
    log=$out/log/plan-$name.txt flags=() code=0
    echo "on_gpu.sh: plan $name"
    if [ "$policy" != - ]; then
      limited "$seconds" "$memwall" run "$step" --policy "$policy" --plan-out "$out/planned/$name.plan" \
        >"$log" 2>&1 </dev/null || code=$?
      # 3: the step does not fit the machine that it was measured on; its plan is written all the same.
      [ $code -eq 0 ] || [ $code -eq 3 ] || { failed "the plan $name ended with code $code: $(tail -n 1 "$log")"; continue; }
      flags=(--plan "$out/planned/$name.plan")
    fi
    code=0
    limited "$seconds" "$memwall" schedule "$step" ${flags[@]+"${flags[@]}"} ${scale:+--scale "$scale"} \
      -o "$out/planned/$name.schedule" >>"$log" 2>&1 </dev/null || code=$?
    [ $code -eq 0 ] || failed "the schedule of the plan $name ended with code $code: $(grep -m 1 '^memwall' "$log")"
  done < <(planned_cases)
}

execute() {
  local file name schedule files=() index=0 seconds code
  while IFS= read -r file; do files+=("$file"); done < <(schedule_files)
  for file in ${files[@]+"${files[@]}"}; do
    name=$(schedule_name "$file")
    index=$((index + 1))
    [ ! -e "$out/replay/$name.execution.csv" ] || continue
    seconds=$(at_most 60 $(($(left) / 2 / (${#files[@]} - index + 1))))
    [ "$seconds" -gt 0 ] || { failed "no time was left for the schedule $name."; continue; }
    schedule=$file
    if [[ $file == *.gz ]]; then
      schedule=$temporary/$name.schedule
      gzip -dc "$file" >"$schedule" || { failed "$file cannot be unpacked."; continue; }
    fi
    echo "on_gpu.sh: [$index/${#files[@]}] schedule $name, up to $seconds s"
    code=0
    limited $((seconds + 180)) "$replay" "$schedule" --backend "$backend" --seconds "$seconds" --scratch "$scratch" \
      -o "$out/replay/$name.execution.csv" >"$out/log/replay-$name.txt" 2>&1 || code=$?
    [ $code -eq 0 ] || failed "schedule $name ended with code $code: $(tail -n 1 "$out/log/replay-$name.txt")"
    [ "$schedule" = "$file" ] || rm -f "$schedule"
  done
}

train() {
  has_torch || { echo "on_gpu.sh: PyTorch is skipped: $python has no torch."; return; }
  local rest=$((($(left) - 30) / 60))
  [ $rest -ge 1 ] || { echo "on_gpu.sh: PyTorch is skipped: no time was left."; return; }
  echo "on_gpu.sh: PyTorch, up to $rest min"
  # Plans are made for the machine that the microbenchmarks have just described.
  local plans=()
  if [ -n "$memwall" ] && [ $device = cuda ] &&
    "$memwall" calibrate "$out/results" --name measured -o "$out/log/planned_for.textproto" >"$out/log/planned_for.txt" 2>&1; then
    plans=(--machine "$out/log/planned_for.textproto" --memwall "$memwall")
  fi
  limited $((rest * 60 + 240)) "$python" "$root/validate/pytorch/matrix.py" --out "$out/pytorch" --minutes $rest \
    --device $device "${plans[@]}" >"$out/log/pytorch.txt" 2>&1 ||
    failed "the PyTorch matrix ended with code $?: $(tail -n 1 "$out/log/pytorch.txt")"
}

# What was executed, against what memwall predicts of the same schedules on the machine that the results describe: the
# table of `memwall validate`. A row outside its tolerance is a finding, not a failure.
compare() {
  [ -n "$memwall" ] || { echo "on_gpu.sh: the comparison is skipped: there is no memwall."; return; }
  local folder=$temporary/measured file name code=0
  mkdir -p "$folder/replay"
  cp "$out"/results/results.* "$folder" 2>/dev/null || { failed "there are no results to compare with."; return; }
  while IFS= read -r file; do
    name=$(schedule_name "$file")
    [ -e "$out/replay/$name.execution.csv" ] || continue
    cp "$file" "$out/replay/$name.execution.csv" "$folder/replay"
  done < <(schedule_files)
  "$memwall" calibrate "$folder" --name measured -o "$folder/machine.textproto" >"$out/log/calibrate.txt" 2>&1 ||
    { failed "no machine file can be made of the results, so that nothing is compared: $(grep -m 1 '^memwall' "$out/log/calibrate.txt")"; return; }
  cp "$folder/machine.textproto" "$out/log"
  "$memwall" validate "$folder" --format md >"$out/log/comparison.md" 2>"$out/log/comparison-errors.txt" || code=$?
  [ $code -eq 0 ] || [ $code -eq 4 ] || failed "the comparison ended with code $code: $(tail -n 1 "$out/log/comparison-errors.txt")"
  grep -E '^\|( (rung|replay|ranking) |---)' "$out/log/comparison.md"
}

# Archives that can be read one by one; files are never larger packed than this, as limits count them unpacked.
readonly kLargest=15000000
pack() {
  rm -f "$out"/archive-*.tar.gz
  local list=$temporary/list sum=0 number=0 size file
  : >"$list"
  flush() {
    [ -s "$list" ] || return 0
    number=$((number + 1))
    tar -C "$temporary/packed" -czhf "$out/archive-$number.tar.gz" -T "$list" || failed "archive $number cannot be written."
    : >"$list"
    sum=0
  }
  # Links, but for files that fit into no archive: these are cut, and joined again by `cat FILE.piece-*`.
  mkdir -p "$temporary/packed"
  while IFS= read -r file; do
    mkdir -p "$temporary/packed/$(dirname "$file")"
    if [ "$(stat -c %s "$out/$file")" -le $kLargest ]; then
      ln -s "$(cd "$out" && pwd)/$file" "$temporary/packed/$file"
    else
      split -b $kLargest -d -a 3 "$out/$file" "$temporary/packed/$file.piece-"
    fi
  done < <(cd "$out" && find results planned replay pytorch log -type f ! -name '*.partial-*' 2>/dev/null | LC_ALL=C sort)
  while IFS= read -r file; do
    size=$(stat -Lc %s "$temporary/packed/$file")
    [ $((sum + size)) -le $kLargest ] || flush
    echo "$file" >>"$list"
    sum=$((sum + size + 1024))
  done < <(cd "$temporary/packed" && find . \( -type f -o -type l \) | LC_ALL=C sort)
  flush
}

count() { grep -c -- "$1" "$2" 2>/dev/null || true; }
summarize() {
  local results=$out/results/results.csv matrix=$out/pytorch/results.csv executions=0 file
  for file in "$out"/replay/*.execution.csv; do [ -e "$file" ] && executions=$((executions + 1)); done
  echo
  echo "microbenchmarks: $(count ',measured,' "$results") rows measured, $(count ',not_applicable,' "$results") not applicable, $(count ',failed,' "$results") failed"
  echo "schedules:       $executions of $(schedule_files | wc -l) executed"
  if [ -e "$matrix" ]; then echo "PyTorch:         $(($(wc -l <"$matrix") - 1)) cases"; else echo "PyTorch:         none"; fi
  for file in "$out"/archive-*.tar.gz; do [ -e "$file" ] && echo "archive:         $file, $(stat -c %s "$file") bytes"; done
  echo "time:            $((SECONDS / 60)) of $minutes min"
}

[ $dry = no ] || { plan; exit 0; }
mkdir -p "$out/replay" "$out/log" || refuse "--out \"$out\": the folder cannot be made."
temporary=$(mktemp -d) || refuse "no temporary folder can be made."
trap 'rm -rf "$temporary"' EXIT
if build && measure; then
  make_plans
  execute
  compare
  train
fi
pack
summarize
[ $failures -eq 0 ]
