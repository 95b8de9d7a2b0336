/** Whether a caller no longer wants what it asked for. @param cancel one Int32, which is not 0 then */
export function isCanceled(cancel: SharedArrayBuffer): boolean {
  return Atomics.load(new Int32Array(cancel), 0) !== 0;
}
