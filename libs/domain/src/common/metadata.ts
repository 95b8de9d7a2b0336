/** A caller's own JSON object, kept and returned as it was sent. */
export type Metadata = Record<string, unknown>;
