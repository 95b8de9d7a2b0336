export {
  readSafetensors,
  readSafetensorsHeader,
  readSafetensorsSync,
  SafetensorsError,
  toFloat32,
} from './safetensors';
export type {
  SafetensorsArray,
  SafetensorsDtype,
  SafetensorsEntry,
  SafetensorsHeader,
  SafetensorsInfo,
} from './safetensors';
