import { isWorkerAway } from '../models/models';
import { isReachable } from '../service/reach';
import { session } from '../session/session';
import { texts } from '../texts';

/** What is wrong with the service at the moment; the region is always there, so that screen readers notice. */
export function Banner() {
  const text = !isReachable.value
    ? texts.banner.away
    : session.value && isWorkerAway.value
      ? texts.banner.workerAway
      : '';
  return (
    <div class="banner" role="status">
      {text && (
        <p>
          <span class="pulse" aria-hidden="true" /> {text}
        </p>
      )}
    </div>
  );
}
