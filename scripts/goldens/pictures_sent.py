"""Records what Pillow with LittleCMS sees in pictures of every depth, kind, profile and orientation, in masks of other shapes, and scaled.

python scripts/goldens/pictures_sent.py test/golden/pictures-sent/cases.json.gz

Needs pillow and numpy. PNGs are put together here, byte for byte; JPEGs and WebPs are Pillow's.
"""

import base64
import gzip
import io
import json
import struct
import sys
import zlib

import numpy as np
from PIL import Image, ImageCms

WIDTH, HEIGHT = 12, 8


# Profiles. Source: ICC.1:2001-04
def fixed(*values): return b"".join(struct.pack(">i", round(v * 65536)) for v in values)
def xyz(v): return b"XYZ \0\0\0\0" + fixed(*v)
def gamma(g): return b"curv\0\0\0\0" + struct.pack(">IH", 1, round(g * 256))
def text(t): return b"text\0\0\0\0" + t + b"\0"
def described(t): return b"desc\0\0\0\0" + struct.pack(">I", len(t) + 1) + t + b"\0" + bytes(78)


def profile(space, tags, pcs=b"XYZ ", kind=b"mntr"):
    tags = [(b"desc", described(b"made")), (b"cprt", text(b"none")), (b"wtpt", xyz((.9642, 1, .8249))), *tags]
    at, table, data = 132 + 12 * len(tags), b"", b""
    for name, content in tags:
        table += name + struct.pack(">II", at + len(data), len(content)); data += content + bytes(-len(content) % 4)
    head = struct.pack(">I4sI4s4s4s6H4s4sI", at + len(data), bytes(4), 0x02100000, kind, space, pcs, 2026, 1, 1, 0, 0, 0, b"acsp", bytes(4), 0)
    return head.ljust(68, b"\0") + fixed(.9642, 1, .8249) + bytes(48) + struct.pack(">I", len(tags)) + table + data


def rgb(red, green, blue, curve):
    return profile(b"RGB ", [(b"rXYZ", xyz(red)), (b"gXYZ", xyz(green)), (b"bXYZ", xyz(blue)), *[(c + b"TRC", curve) for c in (b"r", b"g", b"b")]])


SRGB_CURVE = b"para\0\0\0\0" + struct.pack(">HH", 3, 0) + fixed(2.4, 1 / 1.055, .055 / 1.055, 1 / 12.92, .04045)
RED, GREEN, BLUE = (.43607, .22249, .01392), (.38515, .71687, .09708), (.14307, .06061, .71410)


def printed():
    """CMYK to Lab by a table of two points on each axis: 16-bit `mft2`, inks that multiply."""
    steps = []
    for i in range(16):
        c, m, y, k = (i >> 3) & 1, (i >> 2) & 1, (i >> 1) & 1, i & 1
        light = (1 - .45 * c) * (1 - .5 * m) * (1 - .1 * y) * (1 - .85 * k)
        a, b = (-35 * c + 70 * m - 5 * y) * (1 - k), (-45 * c - 3 * m + 85 * y) * (1 - k)
        steps += [round(light * 100 / 100 * 65280), round((a + 128) * 256), round((b + 128) * 256)]
    line = struct.pack(">2H", 0, 65535)
    table = b"mft2\0\0\0\0" + bytes([4, 3, 2, 0]) + fixed(1, 0, 0, 0, 1, 0, 0, 0, 1) + struct.pack(">2H", 2, 2)
    table += line * 4 + struct.pack(f">{len(steps)}H", *steps) + line * 3
    return profile(b"CMYK", [(b"A2B0", table)], b"Lab ", b"prtr")


PROFILES = {
    "none": None, "srgb": rgb(RED, GREEN, BLUE, SRGB_CURVE), "adobe": rgb((.60974, .31111, .01947), (.20528, .62567, .06087), (.14919, .06322, .74457), gamma(2.2)),
    "p3": rgb((.51512, .24120, -.00105), (.29198, .69225, .04189), (.15710, .06657, .78407), SRGB_CURVE),
    "swapped": rgb(GREEN, BLUE, RED, SRGB_CURVE), "grey": profile(b"GRAY", [(b"kTRC", gamma(1.4))]), "cmyk": printed(),
}
PROFILES["broken"] = PROFILES["p3"][:200] + bytes(60)
SPACES = {"L": "grey", "RGB": "srgb adobe p3 swapped", "CMYK": "cmyk"}
TARGET = ImageCms.createProfile("sRGB")


# Pictures: values from 0 to 65535, [height, width, 4], with areas of full colours.
def content():
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    values = np.stack([x * 65535 // (WIDTH - 1), y * 65535 // (HEIGHT - 1), (x + y) * 3449, 65535 - (x + 2 * y) * 2200], -1)
    for i, colour in enumerate([(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 0, 0)]): values[0:2, 2 * i:2 * i + 2, :3] = np.array(colour) * 65535
    values[2:4, 0:2, 3] = 0; values[2:4, 2:4, 3] = 65535
    return values


def chunk(name, data): return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed(samples, depth):
    """Rows of samples, [height, width, channels], as bytes without a filter."""
    rows = samples.reshape(len(samples), -1)
    if depth == 16: return b"".join(b"\0" + row.astype(">u2").tobytes() for row in rows)
    if depth == 8: return b"".join(b"\0" + row.astype(np.uint8).tobytes() for row in rows)
    bits = (rows[..., None] >> np.arange(depth)[::-1]) & 1
    return b"".join(b"\0" + np.packbits(row.reshape(-1)).tobytes() for row in bits)


def png(samples, depth, colour, chunks=(), interlaced=False):
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)] if interlaced else [(0, 0, 1, 1)]
    data = b"".join(packed(samples[y::dy, x::dx], depth) for x, y, dx, dy in passes if samples[y::dy, x::dx].size)
    head = struct.pack(">IIBBBBB", samples.shape[1], samples.shape[0], depth, colour, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + b"".join(chunk(*c) for c in chunks) + chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b"")


def pngs():
    """(name, file, mode of Pillow for its colours, name of its profile)"""
    full = content()
    for name, mode, colour, channels, depths in [("grey", "L", 0, [1], (1, 2, 4, 8, 16)), ("grey alpha", "L", 4, [1, 3], (8, 16)), ("rgb", "RGB", 2, [0, 1, 2], (8, 16)), ("rgba", "RGB", 6, [0, 1, 2, 3], (8, 16)), ("palette", "RGB", 3, None, (1, 2, 4, 8))]:
        for depth in depths:
            top = 2**depth - 1
            if channels: samples, extra = full[..., channels] * top // 65535, []
            else:
                index = np.arange(WIDTH * HEIGHT) % min(top + 1, 96)
                samples = index.reshape(HEIGHT, WIDTH, 1)
                extra = [(b"PLTE", (full.reshape(-1, 4)[: min(top + 1, 96), :3] // 257).astype(np.uint8).tobytes())]
            for kind, icc in PROFILES.items():
                if depth < 8 and kind in ("srgb", "swapped", "cmyk"): continue
                described_as = [(b"iCCP", b"x\0\0" + zlib.compress(icc, 9))] if icc else []
                yield f"png {name} {depth} {kind}", png(samples, depth, colour, described_as + extra), mode, kind
            yield f"png {name} {depth} interlaced", png(samples, depth, colour, extra, True), mode, "none"
            if depth <= 8 and name in ("grey", "rgb", "palette"):
                one = samples.reshape(-1, samples.shape[-1])[-1]
                clear = bytes([0, 128, 255][: min(3, top + 1)]) if name == "palette" else struct.pack(f">{len(one)}H", *one)
                yield f"png {name} {depth} with a clear colour", png(samples, depth, colour, extra + [(b"tRNS", clear)]), mode, "none"
    samples = full[..., :3] * 255 // 65535
    for name, chunks in {"gAMA": [(b"gAMA", struct.pack(">I", 100000))], "gAMA and cHRM": [(b"gAMA", struct.pack(">I", 45455)), (b"cHRM", struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000))],
                         "sRGB": [(b"sRGB", b"\0")], "cICP of sRGB": [(b"cICP", bytes([1, 13, 0, 1]))]}.items():
        yield f"png rgb 8 {name}", png(samples, 8, 2, chunks), "RGB", "none"


def saved(image, form, **options):
    out = io.BytesIO(); image.save(out, form, **options); return out.getvalue()


def others():
    full = (content() // 257).astype(np.uint8)
    colours, clear = Image.fromarray(full[..., :3].copy()), Image.fromarray(full)
    for kind, icc in PROFILES.items():
        given = {"icc_profile": icc} if icc else {}
        for mode in ("L", "RGB"): yield f"jpeg {mode} {kind}", saved(colours.convert(mode), "JPEG", quality=100, subsampling=0, **given), mode, kind
        yield f"jpeg RGB progressive {kind}", saved(colours, "JPEG", quality=100, subsampling=0, progressive=True, **given), "RGB", kind
        yield f"webp RGB {kind}", saved(colours, "WEBP", lossless=True, **given), "RGB", kind
        yield f"webp RGBA {kind}", saved(clear, "WEBP", lossless=True, exact=True, **given), "RGB", kind
        yield f"webp lossy RGBA {kind}", saved(clear, "WEBP", quality=90, exact=True, **given), "RGB", kind
        if kind != "cmyk": continue
        inks = colours.convert("CMYK")
        yield "jpeg CMYK", saved(inks, "JPEG", quality=100, subsampling=0, **given), "CMYK", kind
        # Inks as an encoder turns them into YCCK, inverted as Adobe has them; the mark of Adobe says so.
        *cmy, k = inks.split()
        turned = Image.merge("RGB", [c.point(lambda v: 255 - v) for c in cmy]).convert("YCbCr").split()
        ycck = Image.merge("CMYK", [*[c.point(lambda v: 255 - v) for c in turned], k])
        file = bytearray(saved(ycck, "JPEG", quality=100, subsampling=0, **given)); file[file.index(b"Adobe") + 11] = 2
        yield "jpeg YCCK", bytes(file), "CMYK", kind


def turned():
    full = content()[..., :3] * 255 // 65535
    image = Image.fromarray(full.astype(np.uint8))
    for orientation in range(1, 9):
        exif = Image.Exif(); exif[0x0112] = orientation; exif[0x010F] = "A camera"; data = exif.tobytes()
        yield f"png turned {orientation}", png(full, 8, 2, [(b"eXIf", data[6:])]), "RGB", "none"
        wide = [(b"iCCP", b"x\0\0" + zlib.compress(PROFILES["p3"], 9)), (b"eXIf", data[6:])]
        yield f"png rgb 16 p3 turned {orientation}", png(content()[..., :3], 16, 2, wide), "RGB", "p3"
        yield f"jpeg p3 turned {orientation}", saved(image, "JPEG", quality=100, subsampling=0, exif=data, icc_profile=PROFILES["p3"]), "RGB", "p3"
        yield f"webp p3 turned {orientation}", saved(image, "WEBP", lossless=True, exif=data, icc_profile=PROFILES["p3"]), "RGB", "p3"
        yield f"jpeg turned {orientation}", saved(image, "JPEG", quality=100, subsampling=0, exif=data), "RGB", "none"
        yield f"webp turned {orientation}", saved(image, "WEBP", lossless=True, exif=data), "RGB", "none"


def seen(file, mode, kind):
    """What Pillow sees: [height, width, 4]. A profile of another kind of picture, or a broken one, counts for nothing."""
    image = Image.open(io.BytesIO(file)); image.load()
    if image.mode == "I;16": image = Image.fromarray((np.array(image) >> 8).astype(np.uint8))
    # Pillow compares a clear grey of less than 8 bits with values that it has scaled.
    if file[24:26] in (b"\1\0", b"\2\0", b"\4\0") and "transparency" in image.info:
        image = image.convert("L"); image.info["transparency"] = file[file.index(b"tRNS") + 5] * 255 // (2 ** file[24] - 1)
    exif = image.getexif().get(0x0112, 1)
    alpha = image.convert("RGBA").getchannel("A") if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info else Image.new("L", image.size, 255)
    plain = image.convert("L" if mode == "L" else mode)
    if kind in SPACES[mode].split():
        source = ImageCms.ImageCmsProfile(io.BytesIO(PROFILES[kind]))
        plain = ImageCms.profileToProfile(plain, source, TARGET, renderingIntent=0, outputMode="RGB")
    result = plain.convert("RGB"); result.putalpha(alpha)
    ways = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
    return np.array(result.transpose(ways[exif]) if exif in ways else result)


def masks():
    """A mask stretched to the picture it is for, and cropped around the middle and scaled as that picture is."""
    for picture in [(96, 64), (64, 96), (64, 64), (160, 20), (50, 33)]:
        for shape in [(96, 64), (64, 64), (20, 160), (8, 8), (33, 50), (192, 128)]:
            for size in [(64, 64), (64, 96), (96, 64)]:
                marks = np.zeros(shape[::-1], np.uint8)
                marks[: shape[1] * 5 // 8, shape[0] * 3 // 8: shape[0] * 7 // 8] = 255
                whole = Image.fromarray(marks).resize(picture, Image.LANCZOS)
                scale = min(picture[0] / size[0], picture[1] / size[1]); cut = [size[0] * scale, size[1] * scale]
                left, top = [(p - c) / 2 for p, c in zip(picture, cut)]
                wanted = whole.resize(size, Image.LANCZOS, box=(left, top, left + cut[0], top + cut[1]))
                file = png((marks // 255)[..., None].astype(int), 1, 0)
                yield {"picture": picture, "shape": shape, "size": size, "file": coded(file), "wanted": coded(np.packbits(np.array(wanted) >= 128).tobytes())}


def scaled():
    """Pictures cropped around their middle and scaled, most to a larger size: waves, which show a shift of a part of a pixel."""
    for own, size in [((31, 31), (32, 32)), ((24, 24), (48, 48)), ((30, 20), (48, 32)), ((64, 24), (40, 40)), ((12, 8), (72, 48)), ((96, 64), (48, 32))]:
        y, x = np.mgrid[0:own[1], 0:own[0]]
        waves = [np.sin(t * 2 * np.pi / 16) * 120 + 127.5 for t in (x, y, x + y)]
        for mode, channels in (("RGB", waves), ("RGBA", [*waves, 255 - x * 4 % 256])):
            samples = np.stack(channels, -1).astype(int)
            scale = min(own[0] / size[0], own[1] / size[1]); cut = [round(s * scale) for s in size]
            left, top = [(o - c) // 2 for o, c in zip(own, cut)]
            picture = Image.fromarray(samples.astype(np.uint8))
            seen = Image.alpha_composite(Image.new("RGBA", own, "white"), picture.convert("RGBA")).convert("RGB")
            wanted = seen.crop((left, top, left + cut[0], top + cut[1])).resize(size, Image.LANCZOS)
            yield {"own": own, "size": size, "mode": mode, "file": coded(png(samples, 8, 6 if mode == "RGBA" else 2)), "wanted": coded(wanted.tobytes())}


def coded(data): return base64.b64encode(data).decode()


def main():
    pictures = []
    for name, file, mode, kind in [*pngs(), *others(), *turned()]:
        pixels = seen(file, mode, kind)
        pictures.append({"name": name, "file": coded(file), "width": pixels.shape[1], "height": pixels.shape[0], "pixels": coded(pixels.tobytes())})
    with open(sys.argv[1], "wb") as out: out.write(gzip.compress(json.dumps({"pictures": pictures, "masks": list(masks()), "scaled": list(scaled())}).encode(), 9, mtime=0))
    print(len(pictures), "pictures")


main()
