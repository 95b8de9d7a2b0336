import { Button } from './buttons';
import { useEffect, useState } from 'preact/hooks';
import { isReachable } from '../service/reach';
import { explain } from './notices';

/** Something that is read when it comes into view. */
interface Load {
  /** Why it could not be read the last time. */
  error: unknown;
  again: () => void;
}

/** Reads something now, and again whenever the service is back. */
export function useLoad(load: () => Promise<void>): Load {
  const [error, setError] = useState<unknown>();
  const again = (): void => {
    setError(undefined);
    load().catch(setError);
  };
  const isThere = isReachable.value;
  useEffect(() => {
    if (isThere || error === undefined) again();
  }, [isThere]);
  return { error, again };
}

interface PendingProps {
  of: Load;
  /** Says that it is being read. */
  text: string;
}

/** Stands where something will be that is still being read, or says why it could not be. */
export function Pending({ of: { error, again }, text }: PendingProps) {
  if (error === undefined) return <p role="status">{text}</p>;
  return (
    <div class="empty not-loaded" role="alert">
      <p>{`This could not be read: ${explain(error)}`}</p>
      <Button kind="is-quiet" onClick={again}>
        Try again
      </Button>
    </div>
  );
}
