/**
 * How long a server of the service keeps an idle connection. nginx and most balancers keep theirs for 60 s: one that
 * the server closes first may get a POST at that moment, which nobody repeats.
 */
export const keepAliveMs = 75_000;
