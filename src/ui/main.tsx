import { render } from 'preact'
import { App } from './frame/app.tsx'
import { keepFocus } from './frame/focus.ts'
import { followLinks } from './frame/router.ts'
import { openSession } from './frame/session.ts'
import { showDeceptiveTexts } from './frame/visibleTexts.ts'
import { applyTheme } from './frame/theme.ts'

showDeceptiveTexts()
applyTheme()
keepFocus()
followLinks()
void openSession()
document.body.replaceChildren() // what the page shows until this script runs
render(<App />, document.body)
