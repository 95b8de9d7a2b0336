import { createHash } from 'node:crypto';
import { Agent, type ServerResponse } from 'node:http';
import { connect, type TcpNetConnectOpts } from 'node:net';
import { type Config } from '@app/config';
import { type DrawingTask, newIdentifier, UploadedPicture } from '@app/domain';
import { PictureDecoder, PictureError, PictureReader } from '@app/pictures';
import { DnsLookUps, RemoteError, RemoteFiles } from '@app/remote';
import sharp from 'sharp';
import { flood } from '../support/flood';
import { SourcePictures } from '../../apps/inference/src/drawing/source-pictures';
import { createInferenceBench, type InferenceBench } from '../support/inference';
import { type PictureServer, startPictureServer } from '../support/picture-server';
import { until } from '../support/until';

/** A picture of four coloured quarters: red, green, blue, white. */
async function quarters(width: number, height: number): Promise<sharp.Sharp> {
  const colours = ['#f00', '#0f0', '#00f', '#fff'];
  const [w, h] = [width / 2, height / 2];
  const parts = colours.map(async (background, i) => ({
    input: await sharp({ create: { width: w, height: h, channels: 3, background } })
      .png()
      .toBuffer(),
    left: (i % 2) * w,
    top: Math.floor(i / 2) * h,
  }));
  return sharp(
    await sharp({ create: { width, height, channels: 3, background: '#000' } })
      .composite(await Promise.all(parts))
      .removeAlpha()
      .png()
      .toBuffer(),
  );
}

const owner = newIdentifier();
const publicHost = '8.8.8.8';
let bench: InferenceBench;
let server: PictureServer;
let sent: Record<string, Buffer>;
let decoder: PictureDecoder;
const openReader = (changes: Partial<Config> = {}): PictureReader =>
  new PictureReader(
    { ...bench.config, picturesAllowPrivate: true, ...changes },
    bench.storage,
    bench.dataSource,
    decoder,
  );

beforeAll(async () => {
  bench = await createInferenceBench();
  decoder = new PictureDecoder(bench.logger);
  const wide = await quarters(200, 100);
  const png = await wide.png().toBuffer();
  sent = {
    png,
    jpeg: await wide.jpeg({ quality: 100, chromaSubsampling: '4:4:4' }).toBuffer(),
    webp: await wide.webp({ lossless: true }).toBuffer(),
    cmyk: await wide.clone().toColourspace('cmyk').jpeg({ quality: 100 }).toBuffer(),
    // Lies on its side: the first row is what is seen on the right.
    turned: await wide.clone().withMetadata({ orientation: 6 }).jpeg({ quality: 100 }).toBuffer(),
    half: await sharp({ create: { width: 8, height: 8, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } })
      .png()
      .toBuffer(),
    grey: await sharp({ create: { width: 8, height: 8, channels: 3, background: '#808080' } })
      .toColourspace('b-w')
      .png()
      .toBuffer(),
    thin: await sharp({ create: { width: 1, height: 100, channels: 3, background: '#00f' } })
      .png()
      .toBuffer(),
    strip: await sharp({ create: { width: 1, height: 101, channels: 3, background: '#00f' } })
      .png()
      .toBuffer(),
    long: await sharp({ create: { width: 16_385, height: 200, channels: 3, background: '#00f' } })
      .png()
      .toBuffer(),
    moving: await sharp(
      await Promise.all(
        ['#f00', '#00f'].map((background) =>
          sharp({ create: { width: 16, height: 16, channels: 3, background } })
            .png()
            .toBuffer(),
        ),
      ),
      { join: { animated: true } },
    )
      .webp({ lossless: true })
      .toBuffer(),
    wide: await sharp({ create: { width: 768, height: 512, channels: 3, background: '#888' } })
      .png()
      .toBuffer(),
    // White above three sixteenths of its height.
    tallMask: await sharp({ create: { width: 512, height: 1024, channels: 3, background: '#000' } })
      .composite([{ input: { create: { width: 512, height: 192, channels: 3, background: '#fff' } }, left: 0, top: 0 }])
      .png()
      .toBuffer(),
    cut: png.subarray(0, png.length / 2),
    gif: Buffer.from('GIF89a                                '),
    page: Buffer.from('<!doctype html><p>Here was a picture once upon a time.</p>'),
    nothing: Buffer.alloc(0),
    bomb: await sharp({ create: { width: 8_000, height: 8_000, channels: 3, background: '#fff' } })
      .png({ compressionLevel: 9 })
      .toBuffer(),
    large: Buffer.concat([png, Buffer.alloc(20_000_001)]),
  };
  const port = (): string => server.url.slice(server.url.lastIndexOf(':') + 1);
  server = await startPictureServer({
    ...Object.fromEntries(Object.entries(sent).map(([name, file]) => [`/${name}`, file])),
    '/endless': (response) => {
      response.write(png);
      const more = setInterval(() => response.write(Buffer.alloc(1_000_000)), 1);
      response.once('close', () => clearInterval(more));
    },
    '/silent': () => undefined,
    '/busy': (response) => response.writeHead(503).end(),
    '/lost': (response) => void response.destroy(),
    '/late': (response) => {
      if (server.asked.filter((path) => path === '/late').length > 1) response.end(png);
      else response.writeHead(500).end();
    },
    '/compressed': (response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(png),
    '/once': (response) => response.writeHead(302, { location: '/png' }).end(),
    '/umlaut': (response) => rawAnswer(response, 'Location: /bild-ü mit.png#oben', 'utf8'),
    '/umlaut-latin': (response) => rawAnswer(response, 'Location: /bild-ü mit.png#oben', 'latin1'),
    '/bild-%C3%BC%20mit.png': png,
    '/bild-%FC%20mit.png': png,
    '/informs': (response) => flood(response, 'HTTP/1.1 103 Early Hints\r\n\r\n'),
    '/crumbs': (response) => {
      const head = `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${png.length.toString(16)}\r\n`;
      response.socket!.write(Buffer.concat([Buffer.from(head), png, Buffer.from('\r\n')]));
      flood(response, '1\r\nx\r\n');
    },
    '/headers': (response) => {
      response.socket!.write('HTTP/1.1 200 OK\r\n');
      flood(response, 'X-More: yes\r\n');
    },
    '/trailers': (response) => {
      response.socket!.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n');
      flood(response, 'X-More: yes\r\n');
    },
    '/until-closed': (response) => {
      const { socket } = response;
      socket!.write('HTTP/1.0 200 OK\r\n\r\n');
      socket!.end(png);
    },
    '/around': (response) => response.writeHead(302, { location: '/around' }).end(),
    '/inside': (response) => response.writeHead(302, { location: `http://[::ffff:127.0.0.1]:${port()}/png` }).end(),
    '/named': (response) => response.writeHead(302, { location: `http://localhost:${port()}/png` }).end(),
    '/farther': (response) => response.writeHead(302, { location: `http://${publicHost}:${port()}/inside` }).end(),
    '/file': (response) => response.writeHead(302, { location: 'file:///etc/passwd' }).end(),
  });
});
afterAll(async () => {
  decoder.onApplicationShutdown();
  await server.close();
  await bench.close();
});

/** Answers with a redirect whose header is sent in this encoding. */
function rawAnswer({ socket }: ServerResponse, header: string, encoding: BufferEncoding): void {
  socket!.end(Buffer.from(`HTTP/1.1 302 Found\r\n${header}\r\nContent-Length: 0\r\n\r\n`, encoding));
}

/** The colour in the middle of each quarter. */
function colours({ width, height, data }: { width: number; height: number; data: Uint8Array }): number[][] {
  return [0, 1, 2, 3].map((i) => {
    const [x, y] = [(width * (1 + 2 * (i % 2))) >> 2, (height * (1 + 2 * (i >> 1))) >> 2];
    return [...data.subarray((y * width + x) * 3, (y * width + x) * 3 + 3)];
  });
}
const [red, green, blue, white] = [
  [255, 0, 0],
  [0, 255, 0],
  [0, 0, 255],
  [255, 255, 255],
];
/** How far the colours may be from what they should be. */
const distance = (found: number[][], wanted: number[][]): number =>
  Math.max(...found.flat().map((value, i) => Math.abs(value - wanted.flat()[i])));
const reasonOf = (read: Promise<unknown>): Promise<string> =>
  read.then(
    () => 'It was read.',
    (error: Error) => (error instanceof PictureError ? error.message : `${error.name}: ${error.message}`),
  );

describe('Pictures from elsewhere', () => {
  it.each(['png', 'jpeg', 'webp'])('are read to the pixel, with the hash of the file: %s', async (name) => {
    const { image, width, height, sha256 } = await openReader().read(`${server.url}/${name}`, {
      owner,
      account: owner,
      field: 'image',
    });
    expect([width, height, image.width, image.height]).toEqual([200, 100, 200, 100]);
    expect(sha256).toBe(createHash('sha256').update(sent[name]).digest('hex'));
    expect(distance(colours(image), [red, green, blue, white])).toBeLessThanOrEqual(name === 'jpeg' ? 2 : 0);
  });

  it('are cropped around their middle to the shape that is wanted, and scaled', async () => {
    const size = { width: 64, height: 128 };
    const reading = { owner, account: owner, field: 'image', size };
    const [first, second] = [
      await openReader().read(`${server.url}/png`, reading),
      await openReader().read(`${server.url}/png`, reading),
    ];
    expect([first.image.width, first.image.height, first.width, first.height]).toEqual([64, 128, 200, 100]);
    expect(distance(colours(first.image), [red, green, blue, white])).toBe(0);
    expect(Buffer.from(first.image.data).equals(second.image.data)).toBe(true);
  });

  it('are the same to the byte where they have the wanted size', async () => {
    const size = { width: 200, height: 100 };
    const scaled = await openReader().read(`${server.url}/jpeg`, { owner, account: owner, field: 'image', size });
    const whole = await openReader().read(`${server.url}/jpeg`, { owner, account: owner, field: 'image' });
    expect(Buffer.from(scaled.image.data).equals(whole.image.data)).toBe(true);
  });

  it('are turned upright as a camera says', async () => {
    const { image, width, height } = await openReader().read(`${server.url}/turned`, {
      owner,
      account: owner,
      field: 'image',
    });
    expect([width, height]).toEqual([100, 200]);
    expect(distance(colours(image), [blue, red, white, green])).toBeLessThan(16);
  });

  it('become red, green and blue whatever they are made of', async () => {
    const read = async (name: string, size?: { width: number; height: number }) =>
      (
        await openReader().read(`${server.url}/${name}`, {
          owner,
          account: owner,
          field: 'image',
          ...(size && { size }),
        })
      ).image;
    const printed = colours(await read('cmyk'));
    expect(printed[3]).toEqual(white);
    // The colours of print are duller.
    expect(printed.slice(0, 3).map((colour) => colour.indexOf(Math.max(...colour)))).toEqual([0, 1, 2]);
    expect(colours(await read('half'))[0]).toEqual(white);
    expect(colours(await read('grey'))[0]).toEqual([128, 128, 128]);
    expect(colours(await read('moving'))).toEqual([red, red, red, red]);
    expect(distance(colours(await read('thin', { width: 64, height: 64 })), [blue, blue, blue, blue])).toBe(0);
  });

  it('are masks where white, or what is transparent, is repainted', async () => {
    const size = { width: 4, height: 4 };
    const reader = openReader();
    const { mask } = await reader.readMask(`${server.url}/png`, {
      owner,
      account: owner,
      field: 'mask',
      size: { width: 8, height: 8 },
    });
    expect([mask.width, mask.height, mask.data.length, mask.data[63]]).toEqual([8, 8, 64, 255]);
    expect(mask.data[0]).toBeLessThan(128);
    const of = 'transparent' as const;
    const cleared = await reader.readMask(`${server.url}/half`, { owner, account: owner, field: 'mask', size, of });
    expect([...cleared.mask.data]).toEqual(new Array(16).fill(255));
    await expect(
      reasonOf(reader.readMask(`${server.url}/half`, { owner, account: owner, field: 'mask', size })),
    ).resolves.toBe(
      'The picture in `mask` marks nothing: what is white is repainted, from 128 of 255 on, and what is transparent counts as black.',
    );
    await expect(
      reasonOf(reader.readMask(`${server.url}/png`, { owner, account: owner, field: 'mask', of })),
    ).resolves.toMatch(/^The picture in `mask` has no alpha channel/);
  });

  it('decide the size of a task of an older version, which is told without a word', async () => {
    const shapes: object[] = [];
    const sources = new SourcePictures(openReader(), {
      recordShape: (_, shape) => Promise.resolve(shapes.push(shape) > 0),
    });
    const sizes = { square: { width: 512, height: 512 }, portrait: { width: 512, height: 768 } };
    const task = { ownerId: owner, aspectRatio: 'square', width: 512, height: 512 } as DrawingTask;
    const inputs = { image: `${server.url}/png`, strength: 0.5, sizes };

    await sources.read(Object.assign(task, { inputs }), new AbortController().signal);

    expect(shapes).toEqual([{ width: 704, height: 384, aspectRatio: null }]);
    expect(task).toMatchObject({ width: 704, height: 384, aspectRatio: null });
  });

  it('are masks of the picture that they come with, onto which one of another shape is stretched', async () => {
    const [edge, marked] = [512, 96];
    const sources = new SourcePictures(openReader(), { recordShape: () => Promise.resolve(true) });
    const inputs = { image: `${server.url}/wide`, mask: `${server.url}/tallMask` };
    const task = { ownerId: owner, accountId: owner, width: edge, height: edge, inputs } as unknown as DrawingTask;
    const { mask } = await sources.read(task, new AbortController().signal);
    const rows = Array.from({ length: edge }, (_, y) => mask!.mask.data[y * edge + edge / 2]);
    expect(rows.findIndex((value) => value < 128)).toBe(marked);
    expect(rows.filter((value) => value >= 128)).toHaveLength(marked);
  });

  it.each([
    ['cut', 'is broken: '],
    ['gif', 'is a GIF, and a PNG, JPEG or WebP is needed'],
    ['page', 'is a page of HTML, and a PNG, JPEG or WebP is needed'],
    ['nothing', 'is no picture, and a PNG, JPEG or WebP is needed'],
    ['bomb', 'has 8000 x 8000 pixels, and at most 50 megapixels are taken'],
    ['strip', 'has 1 x 101 pixels, and at most 100 on one edge for each on the other are taken'],
    ['long', 'has 16385 x 200 pixels, and at most 16384 on an edge are taken'],
    ['large', 'has more than 20 MB'],
    ['endless', 'has more than 20 MB'],
    ['compressed', 'came compressed, though that was not asked for'],
    ['informs', 'could not be fetched: its server sends informational answers without end'],
    ['crumbs', 'comes in too many small pieces'],
    ['headers', 'could not be fetched: its server cannot be reached (HPE_HEADER_OVERFLOW)'],
    ['trailers', 'could not be fetched: its server cannot be reached (ECONNRESET)'],
    ['around', 'is behind more than 3 redirects'],
    ['file', 'has an address that does not begin with http:// or https://'],
    ['absent', 'could not be fetched: its server answered 404.'],
  ])('are refused in a sentence that names the field: %s', async (name, reason) => {
    const message = await reasonOf(
      openReader().read(`${server.url}/${name}`, { owner, account: owner, field: 'control[0].image' }),
    );
    expect(message).toContain(`The picture in \`control[0].image\` ${reason}`);
  });

  it('wait for no dearer ones of other keys', async () => {
    const dear = await sharp({ create: { width: 7_000, height: 7_000, channels: 4, background: '#1234' } })
      .png({ progressive: true })
      .toBuffer();
    const read: string[] = [];
    const decode = async (name: string, source: Uint8Array): Promise<void> => {
      await decoder.decode(name, () => Promise.resolve({ source, to: 'rgb', size: { width: 64, height: 64 } }));
      read.push(name);
    };
    const others = ['a', 'b', 'c'].map((name) => decode(name, dear));
    await Promise.all([...others, decode('small', sent.png)]);
    expect(read).toHaveLength(4);
    expect(read[0]).toBe('small');
  });

  it('are asked for again, three times in all, where their server has trouble', async () => {
    const read = (name: string) =>
      openReader().read(`${server.url}/${name}`, { owner, account: owner, field: 'image' });
    server.asked.length = 0;
    const [late, busy, lost] = await Promise.all([read('late'), reasonOf(read('busy')), reasonOf(read('lost'))]);
    expect(late).toMatchObject({ width: 200 });
    expect(busy).toContain('could not be fetched: its server answered 503');
    expect(lost).toContain('could not be fetched: its server cannot be reached (ECONNRESET)');
    const times = (path: string) => server.asked.filter((each) => each === path).length;
    expect(['/late', '/busy', '/lost'].map(times)).toEqual([2, 3, 3]);
  });

  it('follow a redirect', async () => {
    await expect(
      openReader().read(`${server.url}/once`, { owner, account: owner, field: 'image' }),
    ).resolves.toMatchObject({
      width: 200,
    });
  });

  it.each(['umlaut', 'umlaut-latin'])('follow a redirect whose address has raw bytes: %s', async (name) => {
    server.asked.length = 0;
    await expect(
      openReader().read(`${server.url}/${name}`, { owner, account: owner, field: 'image' }),
    ).resolves.toMatchObject({
      width: 200,
    });
    if (name === 'umlaut') await fetch(`${server.url}/${name}`);
    const [, read, , byFetch = read] = server.asked;
    expect(read).toBe(byFetch);
    expect(read).toBe(name === 'umlaut' ? '/bild-%C3%BC%20mit.png' : '/bild-%FC%20mit.png');
  });

  it('are read from a server that tells the end by closing', async () => {
    await expect(
      openReader().read(`${server.url}/until-closed`, { owner, account: owner, field: 'image' }),
    ).resolves.toMatchObject({
      width: 200,
    });
  });

  it.each(['file:///etc/passwd', 'data:image/png;base64,iVBORw0KGgo=', 'ftp://127.0.0.1/x.png', 'no url'])(
    'are not read from %s',
    async (url) => {
      await expect(reasonOf(openReader().read(url, { owner, account: owner, field: 'image' }))).resolves.toBe(
        'The picture in `image` has an address that does not begin with http:// or https://.',
      );
    },
  );

  it('end with the signal', async () => {
    const stop = new AbortController();
    const reading = openReader().read(`${server.url}/silent`, {
      owner,
      account: owner,
      field: 'image',
      signal: stop.signal,
    });
    await until(async () => server.asked.includes('/silent'), 'the server is asked');
    stop.abort(new Error('It is enough.'));
    await expect(reading).rejects.toThrow('It is enough.');
  });
});

describe('Private addresses', () => {
  it.each([
    'http://127.0.0.1:PORT/png',
    'http://localhost:PORT/png',
    'http://127.1:PORT/png',
    'http://2130706433:PORT/png',
    'http://0x7f.0.0.1:PORT/png',
    'http://0177.0.0.1:PORT/png',
    'http://0:PORT/png',
    'http://[::1]:PORT/png',
    'http://[::ffff:127.0.0.1]:PORT/png',
    'http://[::ffff:7f00:1]:PORT/png',
    'http://[64:ff9b::7f00:1]:PORT/png',
    'http://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1/x.png',
    'http://[fd00::1]/x.png',
    'http://[fe80::1]/x.png',
  ])('are never asked: %s', async (url) => {
    server.asked.length = 0;
    const address = url.replace('PORT', server.url.split(':')[2]);
    const strict = openReader({ picturesAllowPrivate: false });
    await expect(reasonOf(strict.read(address, { owner, account: owner, field: 'image' }))).resolves.toBe(
      'The picture in `image` is at a private, loopback or link-local address, which is not allowed.',
    );
    expect(server.asked).toEqual([]);
  });

  it.each([
    ['an address', '/inside'],
    ['a name', '/named'],
    ['the way outside again', '/farther'],
  ])('are never asked where a public host leads to them: %s', async (_, path) => {
    server.asked.length = 0;
    // A public address leads to the server of this test.
    const network = jest
      .spyOn(Agent.prototype, 'createConnection')
      .mockImplementation((to) =>
        connect({ ...to, ...(to.host === publicHost && { host: '127.0.0.1' }) } as TcpNetConnectOpts),
      );
    try {
      const strict = openReader({ picturesAllowPrivate: false });
      const address = `http://${publicHost}:${server.url.split(':')[2]}${path}`;
      await expect(reasonOf(strict.read(address, { owner, account: owner, field: 'image' }))).resolves.toBe(
        'The picture in `image` is at a private, loopback or link-local address, which is not allowed.',
      );
      expect(server.asked).toEqual(path === '/farther' ? [path, '/inside'] : [path]);
    } finally {
      network.mockRestore();
    }
  });
});

describe('Names', () => {
  const outside = { address: '3ffe::1', family: 6 };
  const loopback = { address: '127.0.0.1', family: 4 };

  it.each([
    ['that lead inside', [[loopback]]],
    ['that lead both outside and inside', [[outside, loopback]]],
    ['that lead inside when they are looked up again', [[outside], [loopback]]],
  ])('%s are never asked', async (_, answers) => {
    server.asked.length = 0;
    let looked = 0;
    const lookUps = new DnsLookUps(() => Promise.resolve(answers[Math.min(looked++, answers.length - 1)]));
    const limits = { maxBytes: 1e6, timeMs: 2_000, maxRedirects: 3, perOwner: 4, headers: {} };
    const files = new RemoteFiles(false, limits, lookUps);
    const url = `http://rebind.test:${server.url.split(':')[2]}/png`;
    for (let i = 0; i < 2; i++) await expect(files.get(owner, url, () => undefined)).rejects.toThrow(RemoteError);
    expect(server.asked).toEqual([]);
  });

  it('of a slow server take a few places of one owner, and none of another', async () => {
    server.asked.length = 0;
    const limits = { maxBytes: 1e6, timeMs: 60_000, maxRedirects: 3, perOwner: 2, headers: {} };
    const files = new RemoteFiles(true, limits);
    const stop = new AbortController();
    const get = (ownerId: string, path: string) =>
      files.get(ownerId, `${server.url}${path}`, () => undefined, stop.signal);
    const stuck = ['/silent', '/silent', '/png'].map((path) => get(owner, path).catch((error: Error) => error.message));
    await until(async () => server.asked.length === 2, 'two are asked for');
    await expect(get(newIdentifier(), '/jpeg')).resolves.toEqual(sent.jpeg);
    expect(server.asked).toEqual(['/silent', '/silent', '/jpeg']);
    stop.abort(new Error('It is enough.'));
    await expect(Promise.all(stuck)).resolves.toEqual(new Array(3).fill('It is enough.'));
  });
});

it('A picture that the disk does not take is not called broken', async () => {
  const written = decoder.decode(owner, async () => ({ source: sent.png, to: 'file', path: '/dev/full' }));
  await expect(written).rejects.toMatchObject({ name: 'Error', code: 'ENOSPC' });
});

describe('Pictures of this service', () => {
  const upload = async (file: Buffer, ownerId = owner): Promise<string> => {
    const [id, token] = [newIdentifier(), newIdentifier()];
    const row = { id, token, ownerId, storageKey: `uploads/${id}.png`, contentType: 'image/png' };
    await bench.storage.write(row.storageKey, file);
    await bench.dataSource.manager.insert(UploadedPicture, {
      ...{ ...row, width: 200, height: 100, bytes: file.length, createdAt: new Date() },
    });
    return `${bench.config.publicUrl}/images/${token}.png`;
  };

  it('are read by their owner, and their shape is known before', async () => {
    const [url, reader] = [await upload(sent.png), openReader()];
    await expect(reader.shapeOf(url, { account: owner, field: 'image' })).resolves.toEqual({ width: 200, height: 100 });
    const { image } = await reader.read(url, { owner, account: owner, field: 'image' });
    expect(colours(image)).toEqual([red, green, blue, white]);
    await expect(reader.shapeOf(`${server.url}/png`, { account: owner, field: 'image' })).resolves.toBeUndefined();
  });

  it('are read where the worker knows the service by another name than the api does', async () => {
    const url = (await upload(sent.png)).replace(bench.config.publicUrl, 'https://pictures.invalid/darkroom');
    const { image } = await openReader().read(url, { owner, account: owner, field: 'image' });
    expect(colours(image)).toEqual([red, green, blue, white]);
  });

  it('of others are not there', async () => {
    const url = await upload(sent.png, newIdentifier());
    const message =
      'The picture in `image` is not there: no upload and no picture of yours has this URL, or not any more.';
    const reader = openReader();
    await expect(reasonOf(reader.read(url, { owner, account: owner, field: 'image' }))).resolves.toBe(message);
    await expect(reasonOf(reader.shapeOf(url, { account: owner, field: 'image' }))).resolves.toBe(message);
    const inside = `${bench.config.publicUrl}/metrics`;
    await expect(reasonOf(reader.read(inside, { owner, account: owner, field: 'image' }))).resolves.toBe(message);
  });
});
