// ONNX Runtime sends telemetry to its maker unless this stands in the environment of the process when its library is
// loaded. In a worker thread `process.env` is a copy, which the library does not see, unless the thread shares it.
process.env.ORT_DISABLE_TELEMETRY = '1';
