import sharp from 'sharp';

/** As XML writes it: an attribute, an element, or a resource. Source: ISO 16684-1, 7. */
const property = /DigitalSourceType.{0,400}?digitalsourcetype\/(\w{1,80})/gs;
/** More than any file has in good faith. */
const [mostProperties, mostLetters] = [100, 1_000_000];

/**
 * The words of IPTC's "Digital Source Type" in the XMP of a PNG, JPEG or WebP, in their order; none where its head
 * cannot be read.
 */
export async function sourceTypesInXmp(file: Buffer): Promise<string[]> {
  const { xmp } = await sharp(file, { limitInputPixels: false, failOn: 'none' })
    .metadata()
    .catch(() => ({ xmp: undefined }));
  const text = xmp?.toString('utf8', 0, mostLetters) ?? '';
  return [...text.matchAll(property)].slice(0, mostProperties).map(([, word]) => word);
}
