import sharp from 'sharp';
import { serveWork } from '../http/serve-work';
import type { PictureOrder } from './picture-order';
import { drawSandboxPicture } from './sandbox-picture';
import { drawThumbnail } from './thumbnail';

// One picture at a time, on one thread, which leaves the other cores to requests. No cache, because
// nothing is read twice.
sharp.concurrency(1);
sharp.cache(false);

serveWork<PictureOrder, Uint8Array>((order) =>
  order.kind === 'sandbox' ? drawSandboxPicture(order) : drawThumbnail(order),
);
