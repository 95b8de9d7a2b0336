import { sourceTypes } from '@app/credentials';
import { serviceVersion } from '@app/process';

/**
 * What a picture is, in the words of IPTC's vocabulary "Digital Source Type": made by a model, or made by one around or
 * over a picture that was given. Article 50(2) of the EU's AI Act asks for such a mark.
 */
export type DigitalSourceType = 'trainedAlgorithmicMedia' | 'compositeWithTrainedAlgorithmicMedia';

/** @param given whether there is a given picture in it: one that is drawn on or repainted, not one that is looked at */
export const sourceTypeOf = (given: boolean): DigitalSourceType =>
  given ? 'compositeWithTrainedAlgorithmicMedia' : 'trainedAlgorithmicMedia';

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
