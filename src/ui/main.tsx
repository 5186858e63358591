import { render } from 'preact'
import { App } from './frame/app.tsx'
import { followLinks } from './frame/router.ts'
import { openSession } from './frame/session.ts'
import { applyTheme } from './frame/theme.ts'

applyTheme()
followLinks()
void openSession()
render(<App />, document.body)
