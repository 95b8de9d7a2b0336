// Must stand first: the next line loads the library.
import './no-telemetry';

export { env, InferenceSession, Tensor } from 'onnxruntime-node';
