// Must stand first: the next line loads the library.
import './no-telemetry';

import { env } from 'onnxruntime-node';

// Errors reach the caller as exceptions, so they need not be written to stderr as well.
env.logLevel = 'fatal';

export { env };
export { InferenceSession, Tensor } from 'onnxruntime-node';
