"""The endpoints of the explorer page."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(prefix="/explore")
