import type { InferenceSession } from 'onnxruntime-node';

/**
 * ONNX Runtime itself lets threads spin for longer. On two idle cores that was as fast within a few percent, and slower
 * beside other busy programs; to sleep at once was slower on idle cores. `npm run bench -- --only spinning` measures it.
 */
export const defaultSpinUs = 50;

/** Lets a session's idle threads spin for so many microseconds; as long as ONNX Runtime likes, by default. */
export function spinning(spinUs?: number): Pick<InferenceSession.SessionOptions, 'extra'> {
  if (spinUs === undefined) return {};
  return {
    extra: { session: { intra_op: spinUs > 0 ? { spin_duration_us: String(spinUs) } : { allow_spinning: '0' } } },
  };
}
