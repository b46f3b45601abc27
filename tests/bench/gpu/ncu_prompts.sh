#!/bin/sh
# Checks that ncu_prompts.py prints the counters of an ncu, here a script that runs no GPU: ncu_prompts.sh PYTHON
# NCU_PROMPTS
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/ncu" <<'END'
#!/bin/sh
echo "$@" >>"$0.calls"
case "$* $FAKE" in
*"permission") echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' && exit 1 ;;
*op_gmma*"old") echo '==ERROR== Failed to find metric sm__inst_executed_pipe_tensor_op_gmma' && exit 9 ;;
*wgmma_f16.ini*"broken") echo '==ERROR== The application returned an error code (1).' && exit 1 ;;
esac
cat <<'CSV'
==PROF== Connected to process 42
# DEVICE: a GPU
==PROF== Profiling "mma_gemm_f16_q4k": 0%....100% - 8 passes
"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"
"0","42","mma_gemm_f16_q4k","Command line profiler metrics","gpu__time_duration.sum","ns","107,520"
"0","42","mma_gemm_f16_q4k","Command line profiler metrics","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed","%","41.25"
"0","42","mma_gemm_f16_q4k","Command line profiler metrics","dram__throughput.avg.pct_of_peak_sustained_elapsed","%","n/a"
CSV
END
chmod +x "$scratch/ncu"
export PATH="$scratch:$PATH" FAKE=right

"$1" "$2" /bin/true wgmma_q4k mma_q4k >"$scratch/figures"
diff - "$scratch/figures" <<'END'
ncu_wgmma_q4k_time 107.5 us
ncu_wgmma_q4k_tensor 41.25 percent
ncu_mma_q4k_time 107.5 us
ncu_mma_q4k_tensor 41.25 percent
passed 2
END
grep -q -- '--clock-control none .*--target sm_90 ' "$scratch/ncu.calls"

FAKE=old "$1" "$2" /bin/true wgmma_q4k >"$scratch/figures"
[ "$(sed -n '$p' "$scratch/figures")" = "passed 1" ]

status=0
FAKE=broken "$1" "$2" /bin/true wgmma_f16 mma_q4k >"$scratch/figures" || status=$?
[ "$status" = 1 ]
diff - "$scratch/figures" <<'END'
FAILED ncu_wgmma_f16: ==ERROR== The application returned an error code (1).
ncu_mma_q4k_time 107.5 us
ncu_mma_q4k_tensor 41.25 percent
passed 1
END

status=0
FAKE=permission "$1" "$2" /bin/true 2>"$scratch/said" || status=$?
[ "$status" = 77 ]
grep -q 'may not read' "$scratch/said"
