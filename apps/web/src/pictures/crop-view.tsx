import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { cropOf, percentStyle, type Size } from './crop';
import type { SentPicture } from './sent-picture';

interface CropViewProps {
  picture: SentPicture;
  alt: string;
  /** Of what is drawn, width divided by height. */
  ratio: number;
  /** Content over the picture, once its size is known. */
  children?: (size: Size) => ComponentChildren;
}

/** A picture whose unused parts are dark. */
export function CropView({ picture: { shownUrl }, alt, ratio, children }: CropViewProps) {
  const [size, setSize] = useState<Size | undefined>();
  const [isGone, setGone] = useState(false);
  if (shownUrl === undefined) return <p class="hint">A picture from elsewhere, which is not shown here.</p>;
  if (isGone) return <p class="problem">This picture is not there any more. Choose another one.</p>;
  return (
    <div class="crop-view">
      <img
        src={shownUrl}
        alt={alt}
        draggable={false}
        onLoad={({ currentTarget: { naturalWidth: width, naturalHeight: height } }) => setSize({ width, height })}
        onError={() => setGone(true)}
      />
      {size && children?.(size)}
      {size && <span class="crop" style={percentStyle(cropOf(size, ratio))} aria-hidden="true" />}
    </div>
  );
}
