import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import { Icon } from './buttons';

/** Marks an element that takes files itself, so that the page does not. */
export const takesFiles = 'data-takes-files';

/** Handlers for an element on which files are dropped. */
export function useDrop(onFiles: (files: File[]) => void) {
  const [isOver, setOver] = useState(false);
  const handlers = {
    [takesFiles]: '',
    onDragOver: (event: DragEvent): void => {
      if (!event.dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      event.stopPropagation();
      setOver(true);
    },
    onDragLeave: (): void => setOver(false),
    onDrop: (event: DragEvent): void => {
      setOver(false);
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      onFiles(files);
    },
  };
  return { isOver, handlers };
}

interface DropBoxProps {
  /** What to drop, such as “a .safetensors file”. */
  what: string;
  /** Of the button that chooses. */
  label: string;
  accept: string;
  isMany?: boolean;
  onFiles: (files: File[]) => void;
  /** Shown in place of the invitation. */
  busy?: ComponentChildren;
  problem?: string;
}

/** A place to drop files, or to choose them. */
export function DropBox({ what, label, accept, isMany = false, onFiles, busy, problem }: DropBoxProps) {
  const { isOver, handlers } = useDrop(onFiles);
  const input = useId();
  return (
    <div class={`drop ${isOver ? 'is-over' : ''}`} {...handlers}>
      {busy || (
        <p>
          <Icon name="upload" /> Drop {what} here, or{' '}
          <label class="file-label" for={input}>
            {isMany ? 'choose files' : 'choose a file'}
            <input
              id={input}
              class="visually-hidden"
              type="file"
              accept={accept}
              multiple={isMany}
              aria-label={label}
              onChange={({ currentTarget }) => {
                onFiles([...(currentTarget.files ?? [])]);
                currentTarget.value = '';
              }}
            />
          </label>
        </p>
      )}
      <p class="problem" role="alert">
        {problem}
      </p>
    </div>
  );
}

/** @param part that was sent, from 0 to 1 */
export function Uploading({ part, then }: { part: number; then: string }) {
  return (
    <p role="status">
      <progress max={1} value={part} aria-label="Progress" />{' '}
      {part < 1 ? `Uploading: ${Math.round(part * 100)} %` : then}
    </p>
  );
}
