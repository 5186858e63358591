import { type ComponentChildren, options, type VNode } from 'preact'

/**
 * Characters that have no width, and those that turn the direction of the text around them. With them, one name looks like
 * another one: `\u202etxt.exe` reads as `exe.txt`. The joiners of words and emoji are not among them.
 */
const DECEPTIVE = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]/g

/** In JSON, such as that of a field, the escape is the same value. */
export const visible = (text: string): string =>
  text.replace(DECEPTIVE, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)

const visibleIn = (child: ComponentChildren): ComponentChildren => {
  if (typeof child === 'string') return visible(child)
  return Array.isArray(child) ? child.map(visibleIn) : child
}

/** Shows the deceptive characters in every text of the page as their escapes, as in JSON. Values of fields remain as they are. */
export const showDeceptiveTexts = (): void => {
  const next = options.vnode?.bind(options)
  options.vnode = (node: VNode<{ children?: ComponentChildren }>) => {
    if (typeof node.type === 'string') node.props.children = visibleIn(node.props.children)
    next?.(node)
  }
}
