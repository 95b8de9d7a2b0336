/** Bounds of what changes a key, over HTTP and by the command, and the default of its grace period. */
export const keyBounds = {
  /** Of each limit but the retention; 0 means no limit. */
  maxCount: 1_000_000,
  /** A hundred years. */
  maxRetentionDays: 36_500,
  /** How long the previous token or secret stays valid. */
  graceHours: { default: 24, max: 8760 },
} as const;

/** The end of a grace period that begins now. */
export const graceEnd = (hours: number = keyBounds.graceHours.default): Date =>
  new Date(Date.now() + hours * 3_600_000);
