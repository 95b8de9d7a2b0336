import { isReachable } from '../service/reach';

/**
 * Does something now and every so often, as long as the tab can be seen and the service answers. @returns what ends it.
 */
export function whileSeen(work: () => void, intervalMs: number): () => void {
  const tick = (): void => {
    if (!document.hidden && isReachable.value) work();
  };
  tick();
  const timer = setInterval(tick, intervalMs);
  document.addEventListener('visibilitychange', tick);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', tick);
  };
}
