import type { InferenceSession } from 'onnxruntime-node';

/**
 * ONNX Runtime itself lets threads spin for longer, which is no faster on two idle cores, and slower beside other busy
 * programs. With 50 microseconds, calls on idle cores took 3 to 8 % longer. `npm run bench -- --only spinning` measures
 * it.
 */
export const defaultSpinUs = 1000;

/** Lets a session's idle threads spin for so many microseconds; as long as ONNX Runtime likes, by default. */
export function spinning(spinUs?: number): Pick<InferenceSession.SessionOptions, 'extra'> {
  if (spinUs === undefined) return {};
  return {
    extra: { session: { intra_op: spinUs > 0 ? { spin_duration_us: String(spinUs) } : { allow_spinning: '0' } } },
  };
}
