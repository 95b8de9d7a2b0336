import { texts } from '../texts';
import { spanSince } from '../ui/span';

/** How long ago something was; the exact time on pointing. */
export function Ago({ moment }: { moment: string }) {
  return (
    <time dateTime={moment} title={new Date(moment).toLocaleString()}>
      {texts.operator.ago(spanSince(moment))}
    </time>
  );
}
