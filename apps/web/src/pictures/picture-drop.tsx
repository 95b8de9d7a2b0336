import { DropBox, Uploading } from '../ui/drop';
import { pictureTypes, type UploadState } from './sent-picture';

/** A drop zone for one picture, which is sent to the service. @param label of the button */
export function PictureDrop({ label, upload: { part, problem, send } }: { label: string; upload: UploadState }) {
  return (
    <DropBox
      what="a picture"
      label={label}
      accept={pictureTypes}
      onFiles={([file]) => send(file)}
      busy={part !== undefined && <Uploading part={part} then="Reading the picture …" />}
      problem={problem}
    />
  );
}
