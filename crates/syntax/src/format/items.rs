//! Files and their items.

use super::Printer;
use super::layout::Event;
use crate::tree::{Item, ItemKind, Module, TypeKind};

impl Printer<'_> {
    pub(super) fn module(&mut self, module: &Module) {
        let mut below_comment = false;
        for (i, item) in module.items.iter().enumerate() {
            if i > 0 {
                self.event(Event::HardLine);
            }
            // A comment moved out of the item above must not become this item's documentation.
            if below_comment || i > 0 && self.text.is_none() && !item.docs.is_empty() {
                self.event(Event::Blank);
            }
            self.item(item);
            let events = self.events.len();
            self.comments_above(item.span.end);
            below_comment = self.events.len() > events;
            let next = module.items.get(i + 1).map_or(u32::MAX, |next| next.span.start);
            self.comments_trailing(next);
        }
        self.comments_left();
    }

    fn item(&mut self, item: &Item) {
        self.comments_above(item.span.start);
        if self.text.is_some() {
            self.blank_before(item.span.start);
        } else {
            for line in &item.docs {
                self.push(format!("// {line}").trim_end());
                self.event(Event::HardLine);
            }
        }
        match &item.kind {
            ItemKind::Import { path, library: true, .. } => self.push(format!("import {path}")),
            ItemKind::Import { path, .. } => self.push(format!("import \"{path}\"")),
            ItemKind::TypeAlias { name, ty } => {
                self.push("type ");
                let hugs = matches!(ty.kind, TypeKind::Record(_)) && !self.has_comment(item.span.start, ty.span.start);
                self.event(Event::Indent);
                self.comments_before(name.span.start);
                self.push(format!("{} =", name.name));
                if hugs {
                    self.event(Event::Dedent);
                    self.push(" ");
                    self.ty(ty);
                } else {
                    self.group(|p| {
                        p.event(Event::Line);
                        p.ty(ty);
                    });
                    self.event(Event::Dedent);
                }
            }
            ItemKind::Let(binding) => self.binding(binding),
        }
    }
}
