import sharp from 'sharp';
import { ofSuite } from '../support/of-suite';
import { startTestService } from '../support/service';

interface RecordJson {
  id: string;
  status: string;
  error: string | null;
  images: string[];
}
type Colour = (red: number, green: number, blue: number) => boolean;

const edge = 512;
const isRed: Colour = (red, green, blue) => red > 120 && red > green + 50 && red > blue + 50;
const isGreen: Colour = (red, green, blue) => green > 70 && green > red + 30 && green > blue + 20;

/** The middle and the area of what has a colour. */
function regionOf(pixels: Uint8Array, isOf: Colour): { x: number; y: number; area: number } {
  let [x, y, area] = [0, 0, 0];
  for (let at = 0; at < edge * edge; at++) {
    if (!isOf(pixels[at * 3], pixels[at * 3 + 1], pixels[at * 3 + 2])) continue;
    x += at % edge;
    y += Math.floor(at / edge);
    area++;
  }
  return { x: x / area, y: y / area, area };
}

describe('Drawing from a picture', () => {
  const service = ofSuite(() => startTestService({ env: { PUBLIC_URL: 'https://darkroom.example' } }));
  const key = ofSuite(() => service.createKey());

  const draw = async (body: object): Promise<{ url: string; pixels: Uint8Array }> => {
    const sent = { model: 'shapes', seed: 7, ...body };
    const headers = { prefer: 'wait=60' };
    const reply = await service.request<RecordJson>('POST', '/v1/sd/text-to-image', { key, body: sent, headers });
    expect([reply.status, reply.body.status, reply.body.error]).toEqual([201, 'succeeded', null]);
    const [url] = reply.body.images;
    const file = await (await fetch(service.baseUrl + new URL(url).pathname)).arrayBuffer();
    return { url, pixels: new Uint8Array(await sharp(file).removeAlpha().raw().toBuffer()) };
  };
  const red = ofSuite(() => draw({ prompt: 'a red circle on a blue background' }));

  it('at a low strength changes the colour, and keeps place and size', async () => {
    const body = { prompt: 'a green circle on a blue background', image: red.url };
    const green = await draw({ ...body, strength: 0.4 });
    const [before, after] = [regionOf(red.pixels, isRed), regionOf(green.pixels, isGreen)];
    expect(before.area).toBeGreaterThan(5_000);
    expect(Math.hypot(after.x - before.x, after.y - before.y)).toBeLessThan(30);
    expect(after.area / before.area).toBeGreaterThan(0.7);
    expect(after.area / before.area).toBeLessThan(1.4);
    expect((await draw({ ...body, strength: 0.4 })).pixels).toEqual(green.pixels);
  });

  it('repaints the part that the mask opens, and leaves every other pixel as it was', async () => {
    const half = edge / 2;
    const white = { create: { width: half, height: half, channels: 3, background: '#fff' } } as const;
    const mask = await sharp({ create: { width: edge, height: edge, channels: 3, background: '#000' } })
      .composite([{ input: await sharp(white).png().toBuffer(), left: 0, top: 0 }])
      .png()
      .toBuffer();
    const upload = await service.request<{ url: string }>('POST', '/v1/uploads', { key, raw: mask });
    const body = { prompt: 'a yellow star on a yellow background', image: red.url, strength: 1 };
    const { pixels } = await draw({ ...body, mask: upload.body.url });
    let [kept, changed] = [0, 0];
    for (let at = 0; at < edge * edge; at++) {
      const isOpen = at % edge < half && at < half * edge;
      const isSame = [0, 1, 2].every((channel) => pixels[at * 3 + channel] === red.pixels[at * 3 + channel]);
      if (!isOpen && !isSame) kept++;
      if (isOpen && !isSame) changed++;
    }
    expect(kept).toBe(0);
    expect(changed).toBeGreaterThan((half * half) / 2);
  });

  it('draws around it wherever it stands, without changing a pixel of it', async () => {
    const size = { width: 576, height: 640 };
    // No multiple of what the latents have pixels for.
    const outpaint = { x: 37, y: 101 };
    const { pixels } = await draw({ prompt: 'a red circle on a blue background', image: red.url, outpaint, ...size });
    expect(pixels).toHaveLength(size.width * size.height * 3);
    const row = (all: Uint8Array, from: number): Uint8Array => all.subarray(3 * from, 3 * (from + edge));
    for (let y = 0; y < edge; y++)
      expect(row(pixels, (y + outpaint.y) * size.width + outpaint.x)).toEqual(row(red.pixels, y * edge));
    // What is above the picture goes on in its colour, and is not left as noise or black.
    const above = [...pixels.subarray(0, 3 * size.width * 64)];
    const mean = [0, 1, 2].map((channel) => above.filter((_, i) => i % 3 === channel).reduce((a, b) => a + b) * 3);
    expect(Math.max(...mean)).toBe(mean[2]);
  });
});
