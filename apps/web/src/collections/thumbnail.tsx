import { pictureUrl } from '../service/address';
import { texts } from '../texts';

/** The picture of something whose name stands beside it. */
export function Thumbnail({ url }: { url: string | null }) {
  return (
    <span class="thumbnail">
      {url === null ? (
        <span class="hint">{texts.collections.noThumbnail}</span>
      ) : (
        <img src={pictureUrl(url)} alt="" loading="lazy" />
      )}
    </span>
  );
}
