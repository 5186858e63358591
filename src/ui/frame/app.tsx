import type { ComponentChildren } from 'preact'
import { useEffect, useErrorBoundary, useRef } from 'preact/hooks'
import { IssuedToken } from '../pages/keys/issuedToken.tsx'
import { pages } from '../pages.ts'
import { Dialogs } from '../parts/dialog.tsx'
import { Lacking } from '../parts/lacking.tsx'
import { Failure } from '../parts/texts.tsx'
import { isReachable } from './api.ts'
import { listenToKeys, Shortcuts } from './keyboard.tsx'
import { live } from './live.ts'
import { Notices } from './notices.tsx'
import type { Page } from './page.ts'
import { linkTo, matched, path, query } from './router.ts'
import { envLabel, may, maySome, operator, session, signOut } from './session.ts'
import { SignIn } from './signIn.tsx'
import { SignInAgain } from './signInAgain.tsx'
import { TicketQuestion } from './ticketQuestion.tsx'
import { nextTheme, theme } from './theme.ts'

/** The frame of every page: navigation, state of the connection, notices. */
export const App = () => {
  useEffect(listenToKeys, [])
  if (session.value === undefined) return <Starting />
  if (!session.value && !operator.value) return <SignIn />
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header>
        <a class="brand" href={linkTo('/')}>
          svc
        </a>
        {session.value && <span class="env">{envLabel.value}</span>}
        <Connection />
        <span class="space" />
        <button type="button" class="plain" onClick={nextTheme}>
          Theme: {theme.value}
        </button>
        <button type="button" class="plain" onClick={() => void signOut()}>
          Sign out
        </button>
      </header>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {/* A page of one environment shows nothing of another one. */}
        <Outlet key={session.value?.env_id} />
      </main>
      <Notices />
      <TicketQuestion />
      <Shortcuts />
      <IssuedToken />
      <Dialogs />
      <SignInAgain />
    </div>
  )
}

const Starting = () => (
  <div class="centered" role="status">
    {isReachable.value ? 'Loading…' : 'The service does not answer. The page tries again.'}
  </div>
)

const Connection = () => {
  if (!isReachable.value)
    return (
      <span class="connection lost" role="status">
        Connection lost. Trying again…
      </span>
    )
  if (live.value === 'off') return null
  return (
    <span class={`connection ${live.value}`} role="status">
      {live.value === 'live' ? 'Live' : 'Connecting…'}
    </span>
  )
}

/** Whether the credential of a scope permits the page. */
const isPermitted = ({ needs, isOperators }: Page): boolean => {
  if (isOperators) return Boolean(operator.value)
  return (
    Boolean(session.value) && (!needs || may(needs.type, needs.action) || maySome(needs.type, needs.action))
  )
}

const Navigation = () => {
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    // On a phone, the list is wider than the screen.
    const link = list.current?.querySelector('[aria-current]')
    link?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }, [path.value])
  return (
    <nav aria-label="Pages">
      <ul ref={list}>
        {pages
          .filter(({ isListed }) => isListed)
          .filter((page) => isPermitted(page) || page.isOperators)
          .map(({ name, path: target, key }) => {
            const isHere = target === '/' ? path.value === '/' : path.value.startsWith(target)
            return (
              <li key={name}>
                <a href={linkTo(target)} aria-current={isHere ? 'page' : undefined} title={key && `g ${key}`}>
                  {name}
                </a>
              </li>
            )
          })}
      </ul>
    </nav>
  )
}

const Outlet = () => {
  for (const page of pages) {
    const params = matched(page.path, path.value)
    if (!params) continue
    document.title = `${page.name} · svc`
    if (!isPermitted(page)) return <Refused page={page} />
    const Content = page.content
    return (
      <Guarded key={page.path + JSON.stringify(params)} name={page.name}>
        <Content params={params} />
      </Guarded>
    )
  }
  document.title = 'Not found · svc'
  return (
    <>
      <h1>Not found</h1>
      <p>
        There is no page at this address. <a href={linkTo('/')}>Overview</a>
      </p>
    </>
  )
}

/** A page that cannot be rendered leaves the frame as it is. Another address of the page renders it again. */
const Guarded = ({ name, children }: { readonly name: string; readonly children: ComponentChildren }) => {
  const [error, retry] = useErrorBoundary()
  const shown = useRef(query.value)
  useEffect(() => {
    if (error && shown.current !== query.value) retry()
    shown.current = query.value
  }, [query.value])
  if (!error) return <>{children}</>
  return (
    <>
      <h1>{name}</h1>
      <Failure error={error as Error} retry={retry} />
    </>
  )
}

const Refused = ({ page: { name, needs, isOperators } }: { readonly page: Page }) => {
  if (isOperators || !session.value)
    return (
      <>
        <h1>{name}</h1>
        <SignIn isInPage scope={isOperators ? 'operator' : 'env'} />
      </>
    )
  return (
    <>
      <h1>{name}</h1>
      {needs && <Lacking {...needs} />}
    </>
  )
}
