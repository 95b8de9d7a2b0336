import { useState } from 'preact/hooks';

interface Side {
  url: string;
  /** Its subject, in words. */
  alt: string;
}

/** Two pictures over each other, the first left and the second right of a line that can be moved. */
export function BeforeAfter({ before, after }: { before: Side; after: Side }) {
  const [percent, setPercent] = useState(50);
  return (
    <div class="before-after">
      <img src={after.url} alt={after.alt} />
      <img
        class="is-before"
        src={before.url}
        alt={before.alt}
        style={{ clipPath: `inset(0 ${100 - percent}% 0 0)` }}
        draggable={false}
      />
      <span class="divider" style={{ left: `${percent}%` }} aria-hidden="true" />
      <input
        type="range"
        min={0}
        max={100}
        value={percent}
        aria-label="How much of the first picture is shown"
        onInput={({ currentTarget }) => setPercent(Number(currentTarget.value))}
      />
    </div>
  );
}
