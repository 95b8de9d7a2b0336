import { render } from 'preact';
import './styles/tokens.css';
import './styles/base.css';
import './styles/shell.css';
import './styles/draw.css';
import './styles/pictures.css';
import './styles/gallery.css';
import './styles/viewer.css';
import './styles/resources.css';
import './styles/operator.css';
import './styles/touch.css';
import { App } from './app';
import { resume } from './session/session';

const page = document.getElementById('page');
if (page) void resume().finally(() => render(<App />, page));
