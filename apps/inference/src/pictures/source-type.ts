import { sourceTypes } from '@app/credentials';
import { serviceVersion } from '@app/process';

/**
 * What a picture is, in the words of IPTC's vocabulary "Digital Source Type": made by a model, or made by one around or
 * over a picture that was given. Article 50(2) of the EU's AI Act asks for such a mark.
 */
export type DigitalSourceType = 'trainedAlgorithmicMedia' | 'compositeWithTrainedAlgorithmicMedia';

/** What a picture was drawn from, in the words of a request or of its parameters. */
interface Given {
  /** It is in the picture; others are looked at only. */
  image?: unknown;
  image_sha256?: string;
}

export const sourceTypeOf = ({ image, image_sha256: hash }: Given): DigitalSourceType =>
  image || hash !== undefined ? 'compositeWithTrainedAlgorithmicMedia' : 'trainedAlgorithmicMedia';

/** An XMP packet that says so. Source: ISO 16684-1; IPTC Photo Metadata Standard 2025.1, "Digital Source Type". */
export const xmpOf = (type: DigitalSourceType): string =>
  `<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/">
 <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
  <rdf:Description rdf:about=""
    xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
    xmlns:xmp="http://ns.adobe.com/xap/1.0/"
    Iptc4xmpExt:DigitalSourceType="${sourceTypes}${type}"
    xmp:CreatorTool="Darkroom ${serviceVersion}"/>
 </rdf:RDF>
</x:xmpmeta>
<?xpacket end="r"?>`;
