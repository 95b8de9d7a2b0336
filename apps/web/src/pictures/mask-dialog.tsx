import { useRef, useState } from 'preact/hooks';
import { Button } from '../ui/buttons';
import { Dialog } from '../ui/dialog';
import { Segments } from '../ui/fields';
import { explain } from '../ui/notices';
import { Range } from '../ui/range';
import { type Box, percentStyle } from './crop';
import { CropView } from './crop-view';
import { type Mask, maskFile, type Shape } from './mask';
import { MaskCanvas } from './mask-canvas';
import { RectangleFields } from './rectangle-fields';
import { type SentPicture, uploadPicture } from './sent-picture';

interface MaskDialogProps {
  picture: SentPicture;
  /** Of what is drawn, width divided by height. */
  ratio: number;
  /** As painted before. */
  mask: Mask | undefined;
  onMask: (mask: Mask) => void;
  onClose: () => void;
}

const tools = ['Brush', 'Eraser'] as const;
/** As a part of the longer edge. */
const widest = 0.3;

/** Sizes are in percent. */
interface Painter {
  tool: (typeof tools)[number];
  brush: number;
  feather: number;
  rectangle: Box;
}

const firstPainter: Painter = {
  tool: 'Brush',
  brush: 30,
  feather: 0,
  rectangle: { left: 25, top: 25, width: 50, height: 50 },
};

/** The dialog in which a mask is painted. */
export function MaskDialog({ picture, ratio, mask, onMask, onClose }: MaskDialogProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [shapes, setShapes] = useState<readonly Shape[]>(mask?.shapes ?? []);
  const [painter, setPainter] = useState<Painter>({ ...firstPainter, feather: mask?.feather ?? 0 });
  const { feather, rectangle } = painter;
  const finish = async (): Promise<void> => {
    const file = canvas.current && (await maskFile(canvas.current, feather / 100));
    if (file) onMask({ ...(await uploadPicture(file)), shapes, feather });
    onClose();
  };
  return (
    <Dialog label="Repaint a part" className="mask-dialog" onClose={onClose}>
      <div class="mask-stage">
        <CropView picture={picture} alt="The picture" ratio={ratio}>
          {(whole) => (
            <>
              <MaskCanvas
                {...{ canvas, whole, shapes }}
                feather={feather / 100}
                brush={(painter.brush / 100) * widest}
                isErasing={painter.tool === 'Eraser'}
                onShape={(shape) => setShapes([...shapes, shape])}
              />
              <span class="rectangle" style={percentStyle(rectangle)} aria-hidden="true" />
            </>
          )}
        </CropView>
      </div>
      <div class="mask-tools">
        <h2>Repaint a part</h2>
        <p class="hint">Paint over what is to be drawn anew. The rest stays as it is.</p>
        <Tools painter={painter} onChange={(part) => setPainter({ ...painter, ...part })} />
        <div class="actions">
          <Button icon="undo" disabled={shapes.length === 0} onClick={() => setShapes(shapes.slice(0, -1))}>
            Undo
          </Button>
          <Button disabled={shapes.length === 0} onClick={() => setShapes([])}>
            Clear
          </Button>
        </div>
        <RectangleFields
          rectangle={rectangle}
          onChange={(changed) => setPainter({ ...painter, rectangle: changed })}
          onAdd={(isErasing) => setShapes([...shapes, { isErasing, rectangle }])}
        />
        <Finish isEmpty={shapes.every(({ isErasing }) => isErasing)} finish={finish} onClose={onClose} />
      </div>
    </Dialog>
  );
}

function Tools({ painter, onChange }: { painter: Painter; onChange: (part: Partial<Painter>) => void }) {
  const { tool, brush, feather } = painter;
  return (
    <>
      <Segments
        name="tool"
        label="Tool"
        options={tools}
        value={tool}
        onChange={(chosen) => onChange({ tool: chosen })}
        show={(name) => name}
      />
      <Range label="Brush size" min={1} max={100} value={brush} onChange={(to) => onChange({ brush: to })} />
      <Range
        label="Soft edge (feather)"
        min={0}
        max={100}
        value={feather}
        onChange={(to) => onChange({ feather: to })}
      />
    </>
  );
}

function Finish({ isEmpty, finish, onClose }: { isEmpty: boolean; finish: () => Promise<void>; onClose: () => void }) {
  const [isSending, setSending] = useState(false);
  const [problem, setProblem] = useState('');
  const send = (): void => {
    setSending(true);
    finish().catch((error: unknown) => {
      setProblem(explain(error));
      setSending(false);
    });
  };
  return (
    <>
      <p class="problem" role="alert">
        {problem}
      </p>
      <div class="actions">
        <Button kind="is-primary" disabled={isSending || isEmpty} onClick={send}>
          {isSending ? 'Sending …' : 'Done'}
        </Button>
        <Button kind="is-quiet" onClick={onClose}>
          Cancel
        </Button>
      </div>
    </>
  );
}
