import sharp from 'sharp';
import { serveWork } from '../http/serve-work';
import type { SandboxPictureOrder } from './picture-order';
import { drawSandboxPicture } from './sandbox-picture';

// One picture at a time, on one thread, which leaves the other cores to requests. No cache, because
// nothing is read twice.
sharp.concurrency(1);
sharp.cache(false);

serveWork<SandboxPictureOrder, Uint8Array>(drawSandboxPicture);
